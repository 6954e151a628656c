"""Client quotas of three brokers: set by any of them, known to all, and decided on by the controller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from time import monotonic

import pytest

import moldau
from moldau.core.errors import ErrorCode
from moldau.wire import messages
from moldau.wire.messages.alter_client_quotas import EntityData, EntryData, OpData
from moldau.wire.messages.create_topics import CreatableTopic
from moldau.wire.messages.describe_client_quotas import ComponentData
from tests.broker.handlers.wire import Wire

SEEN_S_MAX = 30.0


@pytest.fixture
def wires(cluster: moldau.EmbeddedCluster) -> Iterator[list[Wire]]:
    """To each broker, the controller last, as the client that is limited."""
    ids = sorted(cluster.brokers, key=lambda each: each == cluster.controller)
    with ExitStack() as opened:
        yield [opened.enter_context(closing(Wire(cluster.brokers[each].bootstrap_servers, "limited"))) for each in ids]


def alter(wire: Wire, key: str, value: float | None) -> None:
    entry = EntryData([EntityData("client-id", "limited")], [OpData(key, value or 0.0, value is None)])
    (altered,) = wire.ask(
        messages.AlterClientQuotasRequest(entries=[entry]), 1, messages.AlterClientQuotasResponse
    ).entries
    assert altered.error_code == ErrorCode.NONE, altered


def until_known(wires: list[Wire], wanted: dict[str, float]) -> None:
    request = messages.DescribeClientQuotasRequest(components=[ComponentData("client-id", 0, "limited")])
    deadline_s = monotonic() + SEEN_S_MAX
    for wire in wires:
        while True:
            found = wire.ask(request, 1, messages.DescribeClientQuotasResponse).entries
            if {value.key: value.value for entry in found or [] for value in entry.values} == wanted:
                break
            assert monotonic() < deadline_s, f"a broker still says {found}"


def created(wire: Wire, partitions: int) -> tuple[ErrorCode, int]:
    topic = CreatableTopic(name="tried", num_partitions=partitions, replication_factor=1)
    request = messages.CreateTopicsRequest(topics=[topic], timeout_ms=20_000, validate_only=True)
    response = wire.ask(request, 7, messages.CreateTopicsResponse)
    return ErrorCode(response.topics[0].error_code), response.throttle_time_ms


def test_a_quota_set_by_one_broker_is_enforced_by_all(wires: list[Wire]) -> None:
    alter(wires[0], "request_percentage", 1e-6)
    until_known(wires, {"request_percentage": 1e-6})
    for wire in wires:
        request = messages.MetadataRequest(topics=[])
        assert wire.ask(request, 12, messages.MetadataResponse).throttle_time_ms == 1_000
    alter(wires[0], "request_percentage", None)
    until_known(wires, {})


def test_a_forwarded_request_is_limited_by_the_controller_and_paused_for_here(wires: list[Wire]) -> None:
    alter(wires[0], "controller_mutation_rate", 2.0)
    until_known(wires, {"controller_mutation_rate": 2.0})
    assert created(wires[0], 24) == (ErrorCode.NONE, 0)  # of 22
    error, throttle_ms = created(wires[0], 1)
    assert error is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert 0 < throttle_ms <= 1_000
    began_s = monotonic()
    wires[0].ask(messages.MetadataRequest(topics=[]), 12, messages.MetadataResponse)
    assert monotonic() - began_s > 0.5 * throttle_ms / 1_000
    alter(wires[0], "controller_mutation_rate", None)
    until_known(wires, {})
