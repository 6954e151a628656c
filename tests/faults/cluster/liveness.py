"""How a cluster went on under its faults: acknowledgements while they lasted, and how soon it was whole again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.faults.cluster import history as h
from tests.faults.cluster.history import Event

ACKNOWLEDGED_MIN = 100
LEADER_GRACE_S = 5.0
ISR_GROWN_S_MAX = 120.0


@dataclass
class Lasted:
    """One fault: whom it struck, from when to when, and what came of it."""

    name: str
    targets: frozenset[int]
    ends_session: bool
    is_one_broker: bool
    led: tuple[str, ...]
    began_s: float
    ended_s: float = float("inf")
    acknowledged: int = 0
    leaderless_s: float | None = None
    shrank: bool = False
    grown_s: float | None = None

    @property
    def lasted_s(self) -> float:
        return self.ended_s - self.began_s


@dataclass
class Liveness:
    faults: list[Lasted] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


def judge_liveness(events: Sequence[Event], *, session_timeout_s: float, brokers: int) -> Liveness:
    faults = list(_faults(events))
    acks = [event.at_s for event in events if event.op == h.SEND and event.phase == h.OK]
    observed = [event for event in events if event.op == h.OBSERVE]
    for fault in faults:
        fault.acknowledged = bisect_left(acks, fault.ended_s) - bisect_left(acks, fault.began_s)
        _follow(fault, observed)
    complaints = [f"{fault.name}: {text}" for fault in faults for text in _complaints(fault, session_timeout_s)]
    return Liveness(faults, complaints if brokers > 1 else [])


def _faults(events: Sequence[Event]) -> Iterator[Lasted]:
    begun: dict[int, Lasted] = {}
    for event in events:
        if event.op != h.FAULT:
            continue
        if event.phase == h.INVOKE:
            detail = event.detail
            begun[event.id] = Lasted(
                event.value, frozenset(detail["targets"]), detail["ends_session"], detail["one_broker"],
                tuple(detail["led"]), event.at_s,
            )  # fmt: skip
        elif event.id in begun:
            begun[event.id].ended_s = event.at_s
    yield from begun.values()


def _follow(fault: Lasted, observed: Sequence[Event]) -> None:
    """What the observer saw of the struck brokers' partitions."""
    waiting = set(fault.led)
    states: dict[str, tuple[int, set[int]]] = {}
    for event in observed:
        for name, (leader, isr) in event.detail.items():
            states[name] = (leader, set(isr))
        if event.at_s < fault.began_s:
            continue
        if event.at_s <= fault.ended_s:
            waiting -= {name for name in waiting if states.get(name, (-1,))[0] not in {-1, *fault.targets}}
            if fault.led and not waiting and fault.leaderless_s is None:
                fault.leaderless_s = event.at_s - fault.began_s
            fault.shrank |= any(not fault.targets <= isr for _, isr in states.values())
        elif fault.grown_s is None and all(len(isr) == _most(states) for _, isr in states.values()):
            fault.grown_s = event.at_s - fault.ended_s


def _most(states: dict[str, tuple[int, set[int]]]) -> int:
    return max(len(isr) for _, isr in states.values())


def _complaints(fault: Lasted, session_timeout_s: float) -> Iterator[str]:
    if not fault.is_one_broker:
        return
    limit_s = session_timeout_s + LEADER_GRACE_S
    # A broker that fell silent is waited for by all that it replicates: until its session ends, or until leaders that
    # look twice within `replica.lag.time.max.ms`, which is as long in a run, take it out of their ISRs.
    silence_s = session_timeout_s * 1.5 + LEADER_GRACE_S
    if fault.lasted_s > silence_s and fault.acknowledged < ACKNOWLEDGED_MIN:
        yield f"{fault.acknowledged} operations were acknowledged, fewer than {ACKNOWLEDGED_MIN}"
    if fault.ends_session and fault.led and fault.lasted_s > limit_s:
        if fault.leaderless_s is None or fault.leaderless_s > limit_s:
            took = "never" if fault.leaderless_s is None else f"after {fault.leaderless_s:.1f} s"
            yield f"its partitions had other leaders {took}, later than {limit_s:.0f} s"
        if not fault.shrank:
            yield "it stayed among the in-sync replicas"
    if fault.shrank and (fault.grown_s is None or fault.grown_s > ISR_GROWN_S_MAX):
        took = "never" if fault.grown_s is None else f"only after {fault.grown_s:.0f} s"
        yield f"all replicas were in sync again {took}"
