"""A shard without runtime or log: decisions are applied at once, and what they wrote is kept for the test."""

from __future__ import annotations

from typing import Any, TypeVar

from moldau.coordinator.journal import CoordinatorRecord, StoredRecord
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import ProducerId, TopicPartition
from moldau.transactions.endings import Ending
from moldau.transactions.limits import TransactionLimits
from moldau.transactions.markers_due import MarkersDue
from moldau.transactions.producers import Initialising
from moldau.transactions.shard import TransactionShard
from moldau.transactions.states import State
from moldau.transactions.transaction import ProducerIdAndEpoch, ProducerReply, Transaction

R = TypeVar("R")

ID = "copier"
FIRST, SECOND = 4, 5  # versions of EndTxn, of the first and of the second protocol
TIMEOUT_MS = 60_000
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def transaction(state: State = State.EMPTY, **values: Any) -> Transaction:
    defaults: dict[str, Any] = {
        "producer_id": ProducerId(7),
        "previous_producer_id": ProducerId(7),
        "epoch": 3,
        "timeout_ms": TIMEOUT_MS,
        "started_ms": -1 if state is State.EMPTY else 1_000,
        "updated_ms": 1_000,
        "partitions": frozenset({P0}) if state in (State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT) else set(),
    }
    made = {**defaults, **values}
    return Transaction(ID, state=state, **{**made, "partitions": frozenset(made["partitions"])})


def initialising(**values: Any) -> Initialising:
    return Initialising(**{"transactional_id": ID, "timeout_ms": TIMEOUT_MS, **values})


def ending(*, is_commit: bool = True, version: int = SECOND, producer_id: int = 7, epoch: int = 3) -> Ending:
    return Ending(transactional_id=ID, producer_id=producer_id, epoch=epoch, is_commit=is_commit, api_version=version)


class World:
    def __init__(self, *transactions: Transaction, limits: TransactionLimits | None = None) -> None:
        self.shard = TransactionShard(limits or TransactionLimits())
        self.now_ms = 1_000
        self.entries: list[CoordinatorRecord] = []
        self.timers: dict[Any, int] = {}
        self._next_id = 100
        for each in transactions:
            self.shard.transactions[each.transactional_id] = each

    def run(self, decision: Decision[R]) -> R:
        for fact in decision.records:
            self.entries.append(self.shard.encode(fact))
            self.shard.apply(fact)
        for timer in decision.timers:
            if timer.at_ms is None:
                self.timers.pop(timer.key, None)
            else:
                self.timers[timer.key] = timer.at_ms
        return decision.reply if decision.then is None else self.run(decision.then(self.now_ms))

    def __getitem__(self, transactional_id: str) -> Transaction:
        return self.shard.transactions[transactional_id]

    def spare_id(self) -> ProducerId:
        self._next_id += 1
        return ProducerId(self._next_id)

    def init(self, **values: Any) -> ProducerReply:
        request = initialising(**values)
        spare_id = self.spare_id() if self.shard.needs_producer_id(request.transactional_id) else None
        return self.run(self.shard.decide_init_producer_id(request, spare_id=spare_id, now_ms=self.now_ms))

    def add(self, producer: ProducerIdAndEpoch, *partitions: TopicPartition, client_version: int = 0) -> ErrorCode:
        return self.run(
            self.shard.decide_add_partitions(
                ID, producer, frozenset(partitions or {P0}), client_version=client_version, now_ms=self.now_ms
            )
        )

    def end(self, producer: ProducerIdAndEpoch, *, is_commit: bool = True, version: int = SECOND) -> ProducerReply:
        request = ending(is_commit=is_commit, version=version, producer_id=producer.producer_id, epoch=producer.epoch)
        spare_id = self.spare_id() if self.shard.needs_producer_id(ID) else None
        return self.run(self.shard.decide_end_txn(request, spare_id=spare_id, now_ms=self.now_ms))

    def mark_all(self) -> list[MarkersDue]:
        dues = list(self.shard.markers_due())
        for due in dues:
            assert self.run(self.shard.decide_markers_written(due, self.now_ms)) is ErrorCode.NONE
        return dues

    def restarted(self) -> World:
        """Another coordinator that has read the log."""
        world = World(limits=self.shard.limits)
        world.now_ms = self.now_ms
        world._next_id = self._next_id
        for key, value in self.entries:
            fact = world.shard.decode(StoredRecord(memoryview(key), None if value is None else memoryview(value)))
            assert fact is not None
            world.shard.apply(fact)
        world.entries = list(self.entries)
        world.run(world.shard.decide_started(world.now_ms))
        return world


def producer_of(reply: ProducerReply) -> ProducerIdAndEpoch:
    assert reply.error is ErrorCode.NONE, reply
    return ProducerIdAndEpoch(reply.producer_id, reply.epoch)
