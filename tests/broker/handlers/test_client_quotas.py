"""DescribeClientQuotas and AlterClientQuotas over the wire."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from moldau.wire.messages.alter_client_quotas import EntityData, EntryData, OpData
from moldau.wire.messages.describe_client_quotas import ComponentData, ValueData
from tests.broker.handlers.wire import Wire

EXACT = 0
SEEN_S_MAX = 20.0  # Apache Kafka answers before its image shows what it did


def alter(wire: Wire, user: str, *ops: OpData, version: int = 1) -> ErrorCode:
    request = AlterClientQuotasRequest(entries=[EntryData([EntityData("user", user)], list(ops))])
    (entry,) = wire.ask(request, version, AlterClientQuotasResponse).entries
    assert entry.entity == [EntityData("user", user)]
    return ErrorCode(entry.error_code)


def values(wire: Wire, user: str, version: int = 1) -> list[ValueData]:
    request = DescribeClientQuotasRequest(components=[ComponentData("user", EXACT, user)])
    response = wire.ask(request, version, DescribeClientQuotasResponse)
    assert response.error_code == ErrorCode.NONE
    assert response.entries is not None
    return [value for entry in response.entries for value in entry.values]


def until_values(wire: Wire, user: str, wanted: list[ValueData], version: int) -> None:
    deadline_s = monotonic() + SEEN_S_MAX
    while values(wire, user, version) != wanted:
        assert monotonic() < deadline_s, f"{user} never had {wanted}"


@pytest.fixture
def user(wire: Wire, name: str) -> Iterator[str]:
    yield name
    alter(wire, name, OpData("producer_byte_rate", remove=True))


@pytest.mark.parametrize("version", [0, 1])
def test_a_quota_is_set_and_taken_away(wire: Wire, user: str, version: int) -> None:
    assert alter(wire, user, OpData("producer_byte_rate", 1e6), version=version) is ErrorCode.NONE
    until_values(wire, user, [ValueData("producer_byte_rate", 1e6)], version)
    assert alter(wire, user, OpData("producer_byte_rate", remove=True), version=version) is ErrorCode.NONE
    until_values(wire, user, [], version)


def test_a_long_request_is_answered_whole(wire: Wire, user: str) -> None:
    """Longer than what is read on the loop: it comes in parts, and an entity that is named twice is still refused."""
    names = [f"{user}-{number:040}" for number in range(1_000)]
    entries = [
        EntryData([EntityData("user", each)], [OpData("producer_byte_rate", 1.0)]) for each in [*names, names[0]]
    ]
    request = AlterClientQuotasRequest(entries=entries, validate_only=True)
    answer = wire.ask(request, 1, AlterClientQuotasResponse)
    errors = {entry.entity[0].entity_name: entry.error_code for entry in answer.entries}
    assert errors == dict.fromkeys(names, ErrorCode.NONE) | {names[0]: ErrorCode.INVALID_REQUEST}
