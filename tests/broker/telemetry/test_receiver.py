"""What is kept of a client that asks for its subscription."""

from __future__ import annotations

from typing import cast

from moldau.broker.context import Context, Peer, Services
from moldau.broker.telemetry.receiver import client_of
from moldau.wire.api import ApiKey
from moldau.wire.frame import RequestHeader
from tests.broker.telemetry.clients import ID


def test_a_long_client_id_is_cut() -> None:
    """16,384 instances with ids of 32 KB would be half a gigabyte for a quarter of an hour."""
    header = RequestHeader(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, 0, "é" * 16_000)
    peer = Peer("PLAINTEXT", "10.0.0.1", 1)
    found = client_of(ID, Context(cast("Services", None), header, peer))
    assert found.client_id == "é" * 500
