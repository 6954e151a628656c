from __future__ import annotations

from time import monotonic

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import FindCoordinatorRequest, FindCoordinatorResponse
from tests.broker.handlers.wire import ANSWER_WAIT_S, Wire

GROUP, TRANSACTION, SHARE, NONSENSE = 0, 1, 2, 9


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("key", ["orders", ""])
def test_this_broker_coordinates_every_group(wire: Wire, version: int, key: str, broker_id: int) -> None:
    found = until_available(wire, FindCoordinatorRequest(key=key), version)
    assert (found.error_code, found.node_id, found.host != "") == (ErrorCode.NONE, broker_id, True)


@pytest.mark.parametrize("version", [4, 5, 6])
def test_every_group_of_a_batch_is_answered(wire: Wire, version: int, broker_id: int) -> None:
    until_available(wire, FindCoordinatorRequest(key="a"), 3)
    request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=["b", "a", "b"])
    found = wire.ask(request, version, FindCoordinatorResponse).coordinators
    assert [(each.key, each.error_code, each.node_id) for each in found] == [
        (key, ErrorCode.NONE, broker_id) for key in ("b", "a", "b")
    ]


def until_available(wire: Wire, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
    """Apache Kafka creates the topic of groups when it is first asked, and has no coordinator until then."""
    deadline_s = monotonic() + ANSWER_WAIT_S
    while True:
        found = wire.ask(request, version, FindCoordinatorResponse)
        if found.error_code != ErrorCode.COORDINATOR_NOT_AVAILABLE:
            return found
        assert monotonic() < deadline_s, found


@pytest.mark.parametrize("version", [1, 3])
def test_a_transactional_id_has_a_coordinator(wire: Wire, version: int, broker_id: int) -> None:
    found = until_available(wire, FindCoordinatorRequest(key="x", key_type=TRANSACTION), version)
    assert (found.error_code, found.node_id) == (ErrorCode.NONE, broker_id)


@pytest.mark.parametrize("version", [1, 3])
def test_a_key_of_an_unknown_type_is_a_mistake(wire: Wire, version: int) -> None:
    found = wire.ask(FindCoordinatorRequest(key="x", key_type=NONSENSE), version, FindCoordinatorResponse)
    assert found.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("kind", [SHARE, NONSENSE, -1])
def test_keys_of_an_unknown_type_are_a_mistake(wire: Wire, kind: int) -> None:
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["x", "y"])
    found = wire.ask(request, 5, FindCoordinatorResponse).coordinators
    assert [(each.key, each.error_code) for each in found] == [
        ("x", ErrorCode.INVALID_REQUEST),
        ("y", ErrorCode.INVALID_REQUEST),
    ]


def test_no_keys_no_coordinators(wire: Wire) -> None:
    assert wire.ask(FindCoordinatorRequest(coordinator_keys=[]), 6, FindCoordinatorResponse).coordinators == []


@pytest.mark.usefixtures("moldau_only")
def test_a_small_request_gets_no_enormous_answer(wire: Wire) -> None:
    with pytest.raises(ConnectionError):
        wire.ask(FindCoordinatorRequest(coordinator_keys=[""] * 500_000), 6, FindCoordinatorResponse)
