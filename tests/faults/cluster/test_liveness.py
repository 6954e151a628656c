"""How a run's liveness is judged: acknowledgements during a fault, other leaders in time, replicas in sync again."""

from __future__ import annotations

from typing import Any

from tests.faults.cluster import history as h
from tests.faults.cluster.history import Event
from tests.faults.cluster.liveness import judge_liveness

SESSION_S = 9.0


def event(at_s: float, op: str, phase: str = h.OK, **fields: Any) -> Event:
    return Event(at_s, "p", op, phase, **fields)


def observed(at_s: float, leader: int, isr: list[int]) -> Event:
    return event(at_s, h.OBSERVE, detail={"plain-0": [leader, isr]})


def story(
    *, acks: int = 200, leader_s: float = 10.0, ended_s: float = 40.0, grown_s: float = 50.0, one_broker: bool = True
) -> list[str]:
    """Broker 1 leads, and is struck from second 0 on."""
    detail = {"targets": [1], "ends_session": True, "one_broker": one_broker, "led": ["plain-0"]}
    events = [
        observed(-1, 1, [1, 2, 3]),
        event(0, h.FAULT, h.INVOKE, id=1, value="kill", detail=detail),
        *(event(0.1 + at / 100, h.SEND) for at in range(acks)),
        observed(leader_s - 0.5, -1, [2, 3]),
        observed(leader_s, 2, [2, 3]),
        event(ended_s, h.FAULT, id=1),
        observed(grown_s, 2, [1, 2, 3]),
    ]
    events.sort(key=lambda each: each.at_s)
    return judge_liveness(events, session_timeout_s=SESSION_S, brokers=3).complaints


def test_a_cluster_that_goes_on_is_praised() -> None:
    assert story() == []


def test_too_few_acknowledgements() -> None:
    assert story(acks=99) == ["kill: 99 operations were acknowledged, fewer than 100"]
    assert story(acks=0, one_broker=False) == []


def test_a_leader_that_comes_late() -> None:
    assert story(leader_s=14.1) == ["kill: its partitions had other leaders after 14.1 s, later than 14 s"]
    assert story(leader_s=13.9) == []


def test_a_leader_that_never_comes() -> None:
    assert story(leader_s=45, ended_s=40)[0] == "kill: its partitions had other leaders never, later than 14 s"
    assert story(leader_s=11, ended_s=10, grown_s=12) == [], "the fault ended before the session would have"


def test_replicas_that_stay_out_of_sync() -> None:
    assert story(grown_s=161) == ["kill: all replicas were in sync again only after 121 s"]
    assert story(grown_s=159) == []


def test_a_single_broker_is_not_asked_for_others() -> None:
    detail = {"targets": [1], "ends_session": True, "one_broker": True, "led": ["plain-0"]}
    events = [event(0, h.FAULT, h.INVOKE, id=1, value="kill", detail=detail), event(20, h.FAULT, id=1)]
    assert judge_liveness(events, session_timeout_s=SESSION_S, brokers=1).complaints == []
    assert judge_liveness(events, session_timeout_s=SESSION_S, brokers=3).complaints
