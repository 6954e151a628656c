"""Requests of SASL after a login count in the quota of requests, as all others do."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from moldau.wire import messages
from moldau.wire.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from moldau.wire.messages.alter_client_quotas import EntityData, EntryData, OpData
from moldau.wire.schema import Message
from tests.hostile.attacker import Attacker
from tests.node.securing.secured import PASSWORDS, Secured, running_secured

PAUSE_S = 0.5  # of a window of a second, which is the longest pause


def limit(secured: Secured, user: str) -> None:
    address = secured.broker.addresses["PLAINTEXT"]
    entry = EntryData([EntityData("user", user)], [OpData("request_percentage", 1e-6)])
    with Attacker((address.host, address.port)) as admin:
        answer = admin.ask(messages.AlterClientQuotasRequest(entries=[entry]), 1)
        assert answer.entries[0].error_code == 0


@pytest.mark.parametrize(
    ("request_", "version"), [(SaslHandshakeRequest("PLAIN"), 1), (SaslAuthenticateRequest(b""), 2)]
)
def test_a_refused_login_is_paused_for(tmp_path: Path, request_: Message, version: int) -> None:
    with running_secured(tmp_path) as secured:
        limit(secured, "alice")
        address = secured.broker.addresses["SASL_PLAINTEXT"]
        with Attacker((address.host, address.port)) as client:
            assert client.ask(SaslHandshakeRequest("PLAIN"), 1).error_code == 0
            token = f"\0alice\0{PASSWORDS['alice']}".encode()
            assert client.ask(SaslAuthenticateRequest(token), 2).error_code == 0
            assert client.ask(request_, version).error_code == 34
            began_s = time.monotonic()
            assert client.ask(request_, version).error_code == 34
            assert time.monotonic() - began_s > PAUSE_S
