"""What a history says when all of it is known: which values were sent, acknowledged, seen, where and by whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.faults.cluster import history as h
from tests.faults.cluster.history import Event

TopicPartition: TypeAlias = tuple[str, int]
Place: TypeAlias = tuple[str, int, int]
"""A topic, a partition of it and an offset."""

NEVER_S = float("inf")


# librdkafka gives up what it sends when its session ends before it could log in again, as behind a partition.
REFUSED_LOGIN = "_AUTHENTICATION"


@dataclass(slots=True, eq=False)
class Send:
    value: str
    process: str
    partition: TopicPartition
    txn: str
    source: str
    state: str = h.UNKNOWN
    offset: int = -1
    may_repeat: bool = False
    """It was under way when its producer gave another up, and so went on under a new epoch."""


@dataclass(slots=True, eq=False)
class Transaction:
    name: str
    state: str = h.UNKNOWN  # ok: committed; fail: aborted
    commit_invoked_s: float = NEVER_S
    is_end_loose: bool = False  # a request that ends it may be under way still
    sends: list[Send] = field(default_factory=list)

    @property
    def is_committed(self) -> bool:
        return self.state == h.OK

    @property
    def is_aborted(self) -> bool:
        return self.state == h.FAIL


@dataclass(slots=True, eq=False)
class Viewer:
    name: str
    topics: frozenset[str]
    committed: bool
    is_complete: bool = False
    seen: set[str] = field(default_factory=set)


class Facts:
    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.sends: dict[str, Send] = {}
        self.txns: dict[str, Transaction] = {}
        self.viewers: dict[str, Viewer] = {}
        self.polls: dict[str, list[Event]] = defaultdict(list)  # with assignments, by process
        self.values: dict[Place, str] = {}
        self.places: dict[str, Place] = {}
        self.seen: set[str] = set()
        self.seen_committed: set[str] = set()
        self.last_seen: dict[TopicPartition, int] = {}
        self.clashes: dict[tuple[Place, str, str], None] = {}  # a place with two values
        self.repeats: dict[str, set[Place]] = defaultdict(set)  # a value at several places
        self.watermarks: dict[str, tuple[int, int]] = {}  # the leader epoch and the high watermark seen last
        self.receding: list[str] = []  # high watermarks that went back
        self.operations = 0
        self.acknowledged = 0
        self.is_final = False
        self._open: dict[tuple[str, int], Send] = {}
        self._handlers: dict[str, Callable[[Event], None]] = {
            h.SEND: self._send, h.POLL: self._poll, h.ASSIGN: self._assign, h.COMMIT: self._end, h.ABORT: self._end,
            h.LATE_END: self._late_end, h.VIEW: self._view, h.FINAL: self._final,
            h.WATERMARKS: self._watermarks,
        }  # fmt: skip
        self.add(events)

    def add(self, events: Iterable[Event]) -> None:
        """More of them, in the order of their times."""
        for event in events:
            handler = self._handlers.get(event.op)
            if handler is not None:
                handler(event)

    def txn_of(self, send: Send) -> Transaction | None:
        return self.txns.get(send.txn) if send.txn else None

    def is_acknowledged(self, send: Send) -> bool:
        """It was promised to be there: in a transaction only once that is committed."""
        if send.state != h.OK:
            return False
        txn = self.txn_of(send)
        return txn is None or txn.is_committed

    def is_visible(self, value: str, *, committed: bool) -> bool:
        """Whether a reader that passes the value's offset must have got it."""
        if not committed:
            return True
        send = self.sends.get(value)
        if send is None or not send.txn:
            return True
        txn = self.txns[send.txn]
        return txn.is_committed or (not txn.is_aborted and value in self.seen_committed)

    def may_repeat(self, value: str) -> bool:
        send = self.sends.get(value)
        return send is not None and send.may_repeat

    def _txn(self, name: str) -> Transaction:
        txn = self.txns.get(name)
        if txn is None:
            txn = self.txns[name] = Transaction(name)
        return txn

    def _send(self, event: Event) -> None:
        key = (event.process, event.id)
        if event.phase == h.INVOKE:
            self.operations += 1
            partition = (event.topic, event.partition)
            send = Send(event.value, event.process, partition, event.txn, event.source)
            self.sends[event.value] = self._open[key] = send
            if event.txn:
                self._txn(event.txn).sends.append(send)
            return
        known = self._open.pop(key, None)
        if known is None:
            return
        known.state = event.phase
        if REFUSED_LOGIN in event.error and not known.txn:
            for process, number in self._open:
                if process == event.process:
                    self._open[process, number].may_repeat = True
        if event.phase == h.OK:
            self.acknowledged += 1
            if event.offset >= 0:
                known.offset = event.offset
                self._place((*known.partition, event.offset), known.value)

    def _poll(self, event: Event) -> None:
        if event.phase != h.OK:
            return
        self.operations += 1
        self.polls[event.process].append(event)
        viewer = self.viewers.get(event.viewer)
        for topic, partition, offset, value in event.records:
            self._place((topic, partition, offset), value)
            self.seen.add(value)
            if event.committed:
                self.seen_committed.add(value)
            if viewer is not None:
                viewer.seen.add(value)
            key = (topic, partition)
            if offset > self.last_seen.get(key, -1):
                self.last_seen[key] = offset

    def _place(self, place: Place, value: str) -> None:
        known = self.values.setdefault(place, value)
        if known != value:
            self.clashes[place, known, value] = None
        before = self.places.setdefault(value, place)
        if before != place:
            self.repeats[value].update((before, place))

    def _assign(self, event: Event) -> None:
        self.polls[event.process].append(event)

    def _end(self, event: Event) -> None:
        txn = self._txn(event.txn)
        if event.phase == h.INVOKE:
            self.operations += 1
            txn.is_end_loose = True
            if event.op == h.COMMIT:
                txn.commit_invoked_s = min(txn.commit_invoked_s, event.at_s)
            return
        if event.phase == h.UNKNOWN:
            return
        txn.is_end_loose = False
        if event.op == h.COMMIT:
            txn.state = event.phase
        elif event.phase == h.OK:
            txn.state = h.FAIL

    def _late_end(self, event: Event) -> None:
        self._txn(event.txn).is_end_loose = True

    def _view(self, event: Event) -> None:
        if event.phase == h.INVOKE:
            self.viewers.setdefault(event.viewer, Viewer(event.viewer, frozenset(event.topics), event.committed))
        elif event.phase == h.OK and event.viewer in self.viewers:
            self.viewers[event.viewer].is_complete = True

    def _final(self, event: Event) -> None:
        self.is_final = True

    def _watermarks(self, event: Event) -> None:
        for name, (epoch, high_watermark) in event.detail.items():
            last_epoch, last = self.watermarks.get(name, (-1, -1))
            if epoch < last_epoch:
                continue  # told by a leader that does not know yet that it is none
            if high_watermark < last:
                self.receding.append(
                    f"{name} went back from {last} in epoch {last_epoch} to {high_watermark} in epoch {epoch} "
                    f"at {event.at_s:.3f} s"
                )
            self.watermarks[name] = (epoch, max(last, high_watermark))
