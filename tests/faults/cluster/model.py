"""A cluster without faults of its own, in memory: random clients on it give histories that hold no anomaly.

It keeps partitions as lists, loses answers (unknown), refuses sends (fail), aborts transactions, and moves partitions
between a group's members; the checker must find nothing in what comes out, whatever the interleaving.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.faults.cluster import history as h
from tests.faults.cluster.history import Event, Read

PLAIN, TXN, COPIED = "plain", "txn", "copied"
PARTITIONS = 2


@dataclass
class Stored:
    value: str
    txn: str = ""
    is_marker: bool = False


@dataclass
class Model:
    seed: int
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.logs: dict[tuple[str, int], list[Stored]] = {
            (topic, index): [] for topic in (PLAIN, TXN, COPIED) for index in range(PARTITIONS)
        }
        self.outcomes: dict[str, bool] = {}  # of ended transactions: whether they were committed
        self.touched: dict[str, dict[tuple[str, int], None]] = {}  # partitions of open transactions
        self.now_s = 0.0
        self.ids = 0
        self.copied_to = [0] * PARTITIONS
        self.positions: dict[tuple[str, tuple[str, int]], int] = {}
        self.viewers = {
            "reader": ((PLAIN, TXN, COPIED), True), "raw": ((PLAIN, TXN, COPIED), False), "group": ((PLAIN,), False),
        }  # fmt: skip

    def note(self, process: str, op: str, phase: str, **fields: Any) -> None:
        self.now_s += self.chance.random() / 100
        self.events.append(Event(self.now_s, process, op, phase, **fields))

    def run(self, steps: int) -> list[Event]:
        for name, (topics, committed) in self.viewers.items():
            self.note(name, h.VIEW, h.INVOKE, viewer=name, topics=list(topics), committed=committed)
            partitions = [(topic, index) for topic in topics for index in range(PARTITIONS)]
            self.note(f"{name}.1", h.ASSIGN, h.OK, viewer=name, partitions=partitions, offset=0)
        work = [self.producer("p1"), self.producer("p2"), self.writer("w1"), self.writer("w2"), self.copier("c1")]
        work += [self.consumer(name) for name in self.viewers]
        for _ in range(steps):
            next(self.chance.choice(work))
        self.finish(work[:5])
        return self.events

    def finish(self, work: list[Iterator[bool]]) -> None:
        for each in work:
            while not next(each):  # until it stands between two operations
                pass
        copier = self.copier("c2")
        while any(self.copied_to[index] < len(self.logs[PLAIN, index]) for index in range(PARTITIONS)):
            next(copier)
        while not next(copier):
            pass
        for name in self.viewers:
            consumer = self.consumer(name)
            while any(self.left(name)):
                next(consumer)
            self.note(name, h.VIEW, h.OK, viewer=name)
        self.note("run", h.FINAL, h.OK)

    def left(self, viewer: str) -> Iterator[bool]:
        for topic in self.viewers[viewer][0]:
            for index in range(PARTITIONS):
                yield self.positions.get((viewer, (topic, index)), 0) < len(self.logs[topic, index])

    def producer(self, name: str) -> Iterator[bool]:
        while True:
            index = self.chance.randrange(PARTITIONS)
            self.ids += 1
            number = self.ids
            value = f"{name}:{number}"
            self.note(name, h.SEND, h.INVOKE, id=number, topic=PLAIN, partition=index, value=value)
            yield False
            fate = self.chance.random()
            if fate < 0.05:
                self.note(name, h.SEND, h.FAIL, id=number)
            elif fate < 0.08:
                self.note(name, h.SEND, h.UNKNOWN, id=number)
            else:
                self.logs[PLAIN, index].append(Stored(value))
                yield False
                if fate < 0.12:
                    self.note(name, h.SEND, h.UNKNOWN, id=number)
                else:
                    offset = len(self.logs[PLAIN, index]) - 1
                    offset = self.offset_of(PLAIN, index, value, offset)
                    self.note(name, h.SEND, h.OK, id=number, offset=-1 if fate > 0.97 else offset)
            yield True

    def offset_of(self, topic: str, index: int, value: str, last: int) -> int:
        return next(at for at in range(last, -1, -1) if self.logs[topic, index][at].value == value)

    def writer(self, name: str) -> Iterator[bool]:
        for number in range(1_000_000):
            txn = f"{name}/{number}"
            for _ in range(self.chance.randrange(1, 5)):
                yield from self.send_in(txn, name, TXN, self.chance.randrange(PARTITIONS))
            yield from self.end(txn, name, wants_commit=self.chance.random() < 0.7)
            yield True

    def send_in(self, txn: str, name: str, topic: str, index: int, source: str = "") -> Iterator[bool]:
        self.ids += 1
        number, value = self.ids, f"{name}:{self.ids}"
        self.note(name, h.SEND, h.INVOKE, id=number, topic=topic, partition=index, value=value, txn=txn, source=source)
        yield False
        self.logs[topic, index].append(Stored(value, txn))
        self.touched.setdefault(txn, {})[topic, index] = None
        offset = len(self.logs[topic, index]) - 1
        yield False
        self.note(name, h.SEND, h.OK, id=number, offset=offset)

    def end(self, txn: str, name: str, *, wants_commit: bool) -> Iterator[bool]:
        op = h.COMMIT if wants_commit else h.ABORT
        self.note(name, op, h.INVOKE, txn=txn)
        yield False
        is_lost = self.chance.random() < 0.1
        if is_lost and self.chance.random() < 0.5:
            wants_commit = False  # it did not arrive; a successor's beginning, or its time-out, aborts it
        self.outcomes[txn] = wants_commit
        for partition in self.touched.pop(txn, ()):
            self.logs[partition].append(Stored("", txn, is_marker=True))
        yield False
        self.note(name, op, h.UNKNOWN if is_lost else h.OK, txn=txn)

    def copier(self, name: str) -> Iterator[bool]:
        """Source offsets are committed with the transaction, or not at all."""
        for number in range(1_000_000):
            txn, index = f"{name}/{number}", self.chance.randrange(PARTITIONS)
            start = self.copied_to[index]
            batch = self.logs[PLAIN, index][start : start + 5]
            if batch:
                for stored in batch:
                    yield from self.send_in(txn, name, COPIED, index, source=stored.value)
                yield from self.end(txn, name, wants_commit=self.chance.random() < 0.8)
                if self.outcomes[txn]:
                    self.copied_to[index] = start + len(batch)
            yield True

    def consumer(self, viewer: str) -> Iterator[bool]:
        topics, committed = self.viewers[viewer]
        for _ in range(1_000_000):
            topic, index = self.chance.choice(topics), self.chance.randrange(PARTITIONS)
            member = f"{viewer}.1"
            key = (viewer, (topic, index))
            if viewer == "group" and self.chance.random() < 0.1:
                # A rebalance: the next owner may get some again that its predecessor did not commit.
                self.note(member, h.ASSIGN, h.OK, viewer=viewer, partitions=[(topic, index)])
                self.positions[key] = max(0, self.positions.get(key, 0) - self.chance.randrange(3))
            records, end = self.readable(topic, index, self.positions.get(key, 0), committed=committed)
            self.positions[key] = end
            if records:
                self.note(member, h.POLL, h.OK, viewer=viewer, committed=committed, records=records)
            yield True

    def readable(self, topic: str, index: int, start: int, *, committed: bool) -> tuple[list[Read], int]:
        log = self.logs[topic, index]
        end = min(len(log), start + self.chance.randrange(1, 8))
        records: list[Read] = []
        for offset in range(start, end):
            stored = log[offset]
            if committed and stored.txn and stored.txn not in self.outcomes:
                return records, offset  # the last stable offset
            if not stored.is_marker and (not committed or self.outcomes.get(stored.txn, True)):
                records.append((topic, index, offset, stored.value))
        return records, end
