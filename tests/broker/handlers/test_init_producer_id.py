from __future__ import annotations

from typing import Any

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import InitProducerIdRequest, InitProducerIdResponse
from tests.broker.handlers.wire import Wire


def init(wire: Wire, version: int = 4, **fields: Any) -> InitProducerIdResponse:
    fields = {"transactional_id": None, "transaction_timeout_ms": 60_000, **fields}
    return wire.ask(InitProducerIdRequest(**fields), version, InitProducerIdResponse)


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


@pytest.mark.usefixtures("moldau_only")
def test_transactions_are_refused_for_good(wire: Wire) -> None:
    assert init(wire, transactional_id="payments").error_code == ErrorCode.UNSUPPORTED_VERSION
