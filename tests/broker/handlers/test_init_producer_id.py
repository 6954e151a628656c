from __future__ import annotations

from time import monotonic
from typing import Any

import pytest

from moldau.core.errors import ErrorCode
from moldau.core.ids import random_uuid
from moldau.wire.messages import InitProducerIdRequest, InitProducerIdResponse
from moldau.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tests.broker.handlers.wire import Wire

ANSWER_WAIT_S = 30.0


def init(wire: Wire, version: int = 4, **fields: Any) -> InitProducerIdResponse:
    fields = {"transactional_id": None, "transaction_timeout_ms": 60_000, **fields}
    return wire.ask(InitProducerIdRequest(**fields), version, InitProducerIdResponse)


def until_coordinated(wire: Wire, transactional_id: str) -> None:
    """The topic of transactions is made when somebody first asks for a coordinator, and takes its time."""
    deadline_s = monotonic() + ANSWER_WAIT_S
    find = FindCoordinatorRequest(key=transactional_id, key_type=1)
    while (
        wire.ask(find, 3, FindCoordinatorResponse).error_code
        or init(wire, transactional_id=transactional_id).error_code
    ):
        assert monotonic() < deadline_s


@pytest.mark.parametrize("version", range(6))
def test_every_producer_gets_an_id_of_its_own(wire: Wire, version: int) -> None:
    first, second = init(wire, version), init(wire, version)
    assert (first.error_code, first.producer_epoch) == (ErrorCode.NONE, 0)
    assert second.producer_id != first.producer_id >= 0


def test_a_producer_that_brings_an_id_gets_another(wire: Wire) -> None:
    first = init(wire)
    again = init(wire, producer_id=first.producer_id, producer_epoch=0)
    assert (again.error_code, again.producer_epoch) == (ErrorCode.NONE, 0)
    assert again.producer_id != first.producer_id


@pytest.mark.parametrize("fields", [{"producer_id": 1}, {"producer_epoch": 1}, {"transactional_id": ""}])
def test_half_a_request_is_a_mistake(wire: Wire, fields: dict[str, Any]) -> None:
    refused = init(wire, **fields)
    assert (refused.error_code, refused.producer_id, refused.producer_epoch) == (ErrorCode.INVALID_REQUEST, -1, -1)


def test_a_transactional_id_keeps_its_producer_id_and_fences_whoever_had_it(wire: Wire) -> None:
    name = f"payments-{random_uuid().hex()}"
    until_coordinated(wire, name)
    first, second = init(wire, transactional_id=name), init(wire, transactional_id=name)
    assert (first.error_code, second.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    assert (second.producer_id, second.producer_epoch) == (first.producer_id, first.producer_epoch + 1)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_transaction_s_time_out_has_limits(wire: Wire, timeout_ms: int) -> None:
    until_coordinated(wire, "payments")
    refused = init(wire, transactional_id="payments", transaction_timeout_ms=timeout_ms)
    assert refused.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
