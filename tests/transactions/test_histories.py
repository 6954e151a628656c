"""Any history of producers that share an id, of time-outs, lost replies and crashes between any two steps."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.transactions.markers_due import MarkersDue
from moldau.transactions.producers import Initialising
from moldau.transactions.records import TransactionChanged
from moldau.transactions.states import NEXT, PREPARED, State
from moldau.transactions.transaction import TIMEOUT, ProducerIdAndEpoch, ProducerReply, Transaction
from tests.transactions.worlds import FIRST, ID, SECOND, World, ending, initialising, transaction

PARTITIONS = [TopicPartition("orders", number) for number in range(3)]
MOVES = {(before, after) for (before, _), after in NEXT.items()} | {(State.ONGOING, State.PREPARE_ABORT)}


class Step(NamedTuple):
    """One thing that happens, and the choices that it leaves open."""

    kind: str
    which: int
    """Who does it: 0 is the producer that got its epoch last."""
    is_commit: bool
    version: int
    number: int
    is_lost: bool
    """The coordinator crashes after the decision and before it is in the log."""


KINDS = ["add"] * 4 + ["end"] * 4 + ["mark"] * 4 + ["init", "init_again", "wait", "crash"]
WHICH = [0, 0, 0, 0, 1, 1, 2, 5]
EPOCHS = [0, 5, 32764, 32765, 32766]
STEPS = st.builds(
    Step,
    kind=st.sampled_from(KINDS),
    which=st.sampled_from(WHICH),
    is_commit=st.booleans(),
    version=st.sampled_from([FIRST, SECOND]),
    number=st.integers(0, 7),
    is_lost=st.integers(0, 11).map(lambda number: number == 11),
)


class History:
    def __init__(self, epoch: int) -> None:
        self.world = World()
        self.world.run(Decision((TransactionChanged(transaction(epoch=epoch)),), None))
        self.producers = [ProducerIdAndEpoch(7, epoch)]
        self.known_ids = {7}
        self.number = 0  # of the transaction that is open, or was the last
        self.outcomes: dict[int, bool] = {}  # whether a transaction was committed
        self.written: dict[tuple[int, TopicPartition], bool] = {}

    def take(self, step: Step) -> None:
        producer = self.producers[-1 - step.which % len(self.producers)]
        match step.kind:
            case "init":
                self.init(initialising(), None, is_lost=step.is_lost)
            case "init_again":
                request = initialising(producer_id=producer.producer_id, epoch=producer.epoch)
                self.init(request, producer, is_lost=step.is_lost)
            case "add":
                self.add(producer, step)
            case "end":
                self.end(producer, step)
            case "mark":
                self.write_markers(step)
            case "wait":
                self.pass_time([1, 30_000, 70_000][step.number % 3])
            case "crash":
                self.crash()
        self.check_recovery()

    def decide(self, decision: Decision[Any], asker: ProducerIdAndEpoch | None = None, *, is_lost: bool = False) -> Any:
        """Check a decision against the rules and let it happen, unless the coordinator crashes before it is written."""
        before = self.world[ID]
        for fact in decision.records:
            assert isinstance(fact, TransactionChanged)
            self.check_move(before, fact.transaction, asker)
        assert self.world[ID] == before, "a decision changes nothing"
        if is_lost:
            self.crash()
            return None
        for fact in decision.records:
            self.note(before, fact.transaction)
        return self.world.run(decision)

    def check_move(self, before: Transaction, after: Transaction, asker: ProducerIdAndEpoch | None) -> None:
        assert (before.state, after.state) in MOVES
        if after.producer_id == before.producer_id:
            assert after.epoch >= before.epoch, "epochs never go back"
        else:
            assert after.epoch == 0
            assert after.producer_id not in self.known_ids, "a producer id is used by one id, once"
        if asker is not None:
            assert asker.producer_id in (before.producer_id, before.previous_producer_id)
            assert asker.epoch in (before.epoch, before.last_epoch), "a fenced producer changes nothing"

    def note(self, before: Transaction, after: Transaction) -> None:
        self.known_ids.add(after.producer_id)
        if after.state is State.ONGOING and before.state is not State.ONGOING:
            self.number += 1
        if after.state in PREPARED:
            if before.state is not State.ONGOING:
                self.number += 1
            assert self.number not in self.outcomes, "a transaction ends once"
            self.outcomes[self.number] = after.state is State.PREPARE_COMMIT
        if after.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT):
            assert self.outcomes[self.number] is (after.state is State.COMPLETE_COMMIT)
            for partition in before.partitions:
                assert self.written[self.number, partition] is self.outcomes[self.number], "no partition is left out"

    def spare_id(self) -> Any:
        return self.world.spare_id() if self.world.shard.needs_producer_id(ID) else None

    def init(self, request: Initialising, asker: ProducerIdAndEpoch | None, *, is_lost: bool) -> None:
        decision = self.world.shard.decide_init_producer_id(request, spare_id=self.spare_id(), now_ms=self.world.now_ms)
        self.remember(self.decide(decision, asker, is_lost=is_lost))

    def remember(self, reply: ProducerReply | None) -> None:
        if reply is not None and reply.error is ErrorCode.NONE:
            assert (reply.producer_id, reply.epoch) == self.world[ID].successor
            self.producers.append(ProducerIdAndEpoch(reply.producer_id, reply.epoch))

    def add(self, producer: ProducerIdAndEpoch, step: Step) -> None:
        partitions = frozenset(each for each in PARTITIONS if step.number >> each.partition & 1)
        decision = self.world.shard.decide_add_partitions(
            ID, producer, partitions, client_version=0 if step.version == FIRST else 2, now_ms=self.world.now_ms
        )
        self.decide(decision, producer, is_lost=step.is_lost)

    def end(self, producer: ProducerIdAndEpoch, step: Step) -> None:
        request = ending(
            is_commit=step.is_commit, version=step.version, producer_id=producer.producer_id, epoch=producer.epoch
        )
        decision = self.world.shard.decide_end_txn(request, spare_id=self.spare_id(), now_ms=self.world.now_ms)
        reply = self.decide(decision, producer, is_lost=step.is_lost)
        if reply is not None and reply.error is ErrorCode.NONE:
            assert self.outcomes.get(self.number, step.is_commit) is step.is_commit, "a producer is told the outcome"
            if step.version == SECOND:
                self.remember(reply)

    def write_markers(self, step: Step) -> None:
        """Some partitions get their marker; only when all have it is the transaction complete."""
        for due in list(self.world.shard.markers_due()):
            for partition in sorted(due.partitions)[: step.number]:
                self.write_marker(due, partition)
            if step.number >= len(due.partitions):
                decision = self.world.shard.decide_markers_written(due, self.world.now_ms)
                self.decide(decision, due.producer, is_lost=step.is_lost)

    def write_marker(self, due: MarkersDue, partition: TopicPartition) -> None:
        assert self.outcomes[self.number] is due.is_commit, "a marker follows an outcome that is in the log"
        assert self.written.setdefault((self.number, partition), due.is_commit) is due.is_commit

    def pass_time(self, elapsed_ms: int) -> None:
        world = self.world
        world.now_ms += elapsed_ms
        due = [key for key, at_ms in world.timers.items() if key[0] == TIMEOUT and at_ms <= world.now_ms]
        for key in due:
            del world.timers[key]
            world.shard.spare_id = self.spare_id()
            self.decide(world.shard.decide_timer(key, world.now_ms))

    def crash(self) -> None:
        self.world = self.world.restarted()

    def check_recovery(self) -> None:
        live = {key: replace(value, last_epoch=-1) for key, value in self.world.shard.transactions.items()}
        again = self.world.restarted()
        assert again.shard.transactions == live
        assert list(again.shard.markers_due()) == list(self.world.shard.markers_due())
        assert timeouts(again) == timeouts(self.world)


def timeouts(world: World) -> dict[Any, int]:
    return {key: at_ms for key, at_ms in world.timers.items() if key[0] == TIMEOUT}


@given(epoch=st.sampled_from(EPOCHS), steps=st.lists(STEPS, max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_history_keeps_the_promises(epoch: int, steps: list[Step]) -> None:
    history = History(epoch)
    for step in steps:
        history.take(step)


@pytest.mark.parametrize("seed", range(40))
def test_long_histories_from_a_seed(seed: int) -> None:
    """Chance without memory gets further than a search for the smallest example."""
    random = Random(seed)
    history = History(random.choice(EPOCHS))
    for _ in range(150):
        step = Step(
            kind=random.choice(KINDS),
            which=random.choice(WHICH),
            is_commit=random.random() < 0.5,
            version=random.choice([FIRST, SECOND]),
            number=random.randrange(8),
            is_lost=random.randrange(12) == 0,
        )
        history.take(step)
