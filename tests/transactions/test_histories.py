"""Any history of producers that share an id, of time-outs, lost replies and crashes between any two steps."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule
from msgspec.structs import replace

from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.transactions.markers import MarkersDue
from moldau.transactions.records import TransactionChanged
from moldau.transactions.states import NEXT, PREPARED, State
from moldau.transactions.timers import TIMEOUT
from moldau.transactions.transaction import Producer, Transaction
from tests.transactions.worlds import FIRST, ID, SECOND, World, ending, initialising, transaction

PARTITIONS = [TopicPartition("orders", number) for number in range(3)]
MOVES = {(before, after) for (before, _), after in NEXT.items()} | {(State.ONGOING, State.PREPARE_ABORT)}
VERSIONS = st.sampled_from([FIRST, SECOND])


class Histories(RuleBasedStateMachine):
    producers = Bundle("producers")

    @initialize(epoch=st.sampled_from([0, 5, 32763, 32766]))
    def begin(self, epoch: int) -> None:
        self.world = World()
        self.world.run(Decision((TransactionChanged(transaction(epoch=epoch)),), None))
        self.outcomes: dict[int, bool] = {}  # the number of a transaction -> whether it was committed
        self.number = 0
        self.written: dict[tuple[int, TopicPartition], bool] = {}
        self.known_ids = {7}

    def decide(self, decision: Decision[Any], asker: Producer | None = None, *, is_lost: bool = False) -> Any:
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

    def check_move(self, before: Transaction, after: Transaction, asker: Producer | None) -> None:
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

    @rule(target=producers, is_lost=st.booleans())
    def init(self, is_lost: bool) -> Any:
        decision = self.world.shard.decide_init_producer_id(
            initialising(), spare_id=self.spare_id(), now_ms=self.world.now_ms
        )
        return self.producer(self.decide(decision, is_lost=is_lost))

    @rule(target=producers, producer=producers)
    def init_again(self, producer: Producer) -> Any:
        request = initialising(producer_id=producer.producer_id, epoch=producer.epoch)
        decision = self.world.shard.decide_init_producer_id(request, spare_id=self.spare_id(), now_ms=self.world.now_ms)
        return self.producer(self.decide(decision, producer))

    def producer(self, reply: Any) -> Any:
        if reply is None or reply.error is not ErrorCode.NONE:
            return multiple()
        assert (reply.producer_id, reply.epoch) == self.world[ID].successor
        return Producer(reply.producer_id, reply.epoch)

    @rule(
        producer=producers,
        partitions=st.frozensets(st.sampled_from(PARTITIONS)),
        version=st.sampled_from([0, 2]),
        is_lost=st.booleans(),
    )
    def add(self, producer: Producer, partitions: frozenset[TopicPartition], version: int, is_lost: bool) -> None:
        decision = self.world.shard.decide_add_partitions(
            ID, producer, partitions, client_version=version, now_ms=self.world.now_ms
        )
        self.decide(decision, producer, is_lost=is_lost)

    @rule(target=producers, producer=producers, is_commit=st.booleans(), version=VERSIONS, is_lost=st.booleans())
    def end(self, producer: Producer, is_commit: bool, version: int, is_lost: bool) -> Any:
        request = ending(is_commit=is_commit, version=version, producer_id=producer.producer_id, epoch=producer.epoch)
        decision = self.world.shard.decide_end_txn(request, spare_id=self.spare_id(), now_ms=self.world.now_ms)
        reply = self.decide(decision, producer, is_lost=is_lost)
        if reply is None or reply.error is not ErrorCode.NONE:
            return multiple()
        assert self.outcomes.get(self.number, is_commit) is is_commit, "a producer is told the outcome that it is"
        return self.producer(reply) if version == SECOND else multiple()

    @rule(how_many=st.integers(0, 3), is_lost=st.booleans())
    def write_markers(self, how_many: int, is_lost: bool) -> None:
        """Some partitions get their marker; only when all have it is the transaction complete."""
        for due in list(self.world.shard.markers_due()):
            for partition in sorted(due.partitions)[:how_many]:
                self.write_marker(due, partition)
            if how_many >= len(due.partitions):
                decision = self.world.shard.decide_markers_written(due, self.world.now_ms)
                self.decide(decision, due.producer, is_lost=is_lost)

    def write_marker(self, due: MarkersDue, partition: TopicPartition) -> None:
        assert self.outcomes[self.number] is due.is_commit, "a marker follows an outcome that is in the log"
        assert self.written.setdefault((self.number, partition), due.is_commit) is due.is_commit

    @rule(elapsed_ms=st.sampled_from([1, 30_000, 70_000]))
    def pass_time(self, elapsed_ms: int) -> None:
        world = self.world
        world.now_ms += elapsed_ms
        due = [key for key, at_ms in world.timers.items() if key[0] == TIMEOUT and at_ms <= world.now_ms]
        for key in due:
            del world.timers[key]
            world.shard.spare_id = self.spare_id()
            self.decide(world.shard.decide_timer(key, world.now_ms))

    @rule()
    def crash(self) -> None:
        self.world = self.world.restarted()

    @invariant()
    def the_log_tells_the_state(self) -> None:
        live = {key: replace(value, last_epoch=-1) for key, value in self.world.shard.transactions.items()}
        again = self.world.restarted()
        assert again.shard.transactions == live
        assert list(again.shard.markers_due()) == list(self.world.shard.markers_due())
        timeouts = {key: at_ms for key, at_ms in self.world.timers.items() if key[0] == TIMEOUT}
        assert timeouts == {key: at_ms for key, at_ms in again.timers.items() if key[0] == TIMEOUT}


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
