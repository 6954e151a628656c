from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import FindCoordinatorRequest, FindCoordinatorResponse
from tests.broker.handlers.wire import Wire

GROUP, TRANSACTION, SHARE, NONSENSE = 0, 1, 2, 9


@pytest.mark.usefixtures("moldau_only")
@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("key", ["orders", ""])
def test_no_coordinator_is_available(wire: Wire, version: int, key: str) -> None:
    found = wire.ask(FindCoordinatorRequest(key=key), version, FindCoordinatorResponse)
    assert (found.error_code, found.node_id, found.host, found.port) == (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        -1,
        "",
        -1,
    )
    assert version == 0 or "consumer groups" in (found.error_message or "")


@pytest.mark.usefixtures("moldau_only")
@pytest.mark.parametrize("version", [4, 5, 6])
@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
def test_every_key_of_a_batch_is_answered(wire: Wire, version: int, kind: int) -> None:
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["b", "a", "b"])
    found = wire.ask(request, version, FindCoordinatorResponse).coordinators
    assert [(each.key, each.error_code, each.node_id) for each in found] == [
        (key, ErrorCode.COORDINATOR_NOT_AVAILABLE, -1) for key in ("b", "a", "b")
    ]


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
