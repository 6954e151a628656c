"""A whole shard: time-outs, expiry, recovery and the wait for markers."""

from __future__ import annotations

import asyncio
import time

import pytest
from msgspec.structs import replace

from moldau.coordinator.journal import CoordinatorRecord, StoredRecord
from moldau.coordinator.runtime import Runtime
from moldau.core.clock import SystemClock
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision, Delayed, Timer
from moldau.core.errors import ErrorCode
from moldau.core.ids import ProducerId
from moldau.log.producers.producer_state import Marker
from moldau.transactions.errors import error_for_client
from moldau.transactions.limits import (
    EXPIRY_LOOKS_MAX,
    FORGOTTEN_BYTES_MAX,
    FORGOTTEN_IDS_MAX,
    SPARE_ID_WAIT_MS,
    TransactionLimits,
)
from moldau.transactions.records import Fact, TransactionChanged, TransactionForgotten
from moldau.transactions.shard import TransactionShard
from moldau.transactions.states import State
from moldau.transactions.transaction import EXPIRY, MARKERS, ProducerIdAndEpoch, ProducerReply, timeout_key
from moldau.wire.api import ApiKey
from tests.coordinator.journals import MemoryJournal
from tests.coordinator.loops import on_a_loop
from tests.transactions.worlds import FIRST, ID, P0, TIMEOUT_MS, World, producer_of, transaction

WEEK_MS = 604_800_000
HOUR_MS = 3_600_000
NOTHING: Decision[None] = Decision.reply_only(None)


def test_a_transaction_that_lasts_too_long_is_aborted_and_its_producer_can_abort_it_too() -> None:
    world = World()
    us = producer_of(world.init())
    assert world.add(us) is ErrorCode.NONE
    deadline_ms = world.timers[timeout_key(ID)]
    assert deadline_ms == world.now_ms + TIMEOUT_MS + 1
    early = world.shard.decide_timer(timeout_key(ID), deadline_ms - 1)
    assert early == Decision((), None, (Timer(timeout_key(ID), deadline_ms),))

    world.run(world.shard.decide_timer(timeout_key(ID), deadline_ms))
    assert world[ID].state is State.PREPARE_ABORT
    assert world.timers == {}
    (due,) = world.mark_all()
    assert (due.is_commit, due.producer, due.partitions) == (
        False,
        ProducerIdAndEpoch(us.producer_id, 1),
        frozenset({P0}),
    )
    assert world.end(us).error is ErrorCode.INVALID_TXN_STATE
    assert world.end(us, is_commit=False) == ProducerReply(ErrorCode.NONE, us.producer_id, 1)


def test_a_client_of_the_first_protocol_is_fenced_by_the_time_out() -> None:
    world = World()
    us = producer_of(world.init())
    world.add(us)
    world.run(world.shard.decide_timeout(ID, world.timers[timeout_key(ID)]))
    world.mark_all()
    for is_commit in (True, False):
        assert world.end(us, is_commit=is_commit, version=FIRST).error is ErrorCode.PRODUCER_FENCED
    assert world.add(us) is ErrorCode.PRODUCER_FENCED


def test_a_timer_that_comes_after_the_end_changes_nothing() -> None:
    for state in State:
        world = World(transaction(state))
        if state is not State.ONGOING:
            assert world.shard.decide_timeout(ID, 10**12) == NOTHING
    assert World().shard.decide_timeout(ID, 10**12) == NOTHING


def test_a_time_out_with_the_last_epoch_needs_a_producer_id() -> None:
    world = World(transaction(State.ONGOING, epoch=32766))
    late_ms = 1_000 + TIMEOUT_MS + 1
    wait = Timer(timeout_key(ID), late_ms + SPARE_ID_WAIT_MS)
    assert world.shard.decide_timeout(ID, late_ms) == Decision((), None, (wait,))
    world.shard.spare_id = ProducerId(50)
    world.run(world.shard.decide_timeout(ID, late_ms))
    assert world[ID].next_producer_id == 50
    assert world.shard.spare_id is None
    world.mark_all()
    assert world[ID].successor == ProducerIdAndEpoch(50, 0)


def test_recovery_keeps_deadlines_and_markers() -> None:
    world = World()
    us = producer_of(world.init())
    world.add(us)
    world.now_ms += 10
    again = world.restarted()
    assert again.timers == {timeout_key(ID): 1_000 + TIMEOUT_MS + 1, EXPIRY: world.now_ms + HOUR_MS}
    world.end(us)
    again = world.restarted()
    assert list(again.shard.markers_due()) == list(world.shard.markers_due())
    assert again.timers == {EXPIRY: world.now_ms + HOUR_MS}


def test_markers_are_waited_for_and_not_given_out_twice() -> None:
    world = World()
    shard = world.shard
    assert shard.decide_next_markers(frozenset()) == Decision((), Delayed(MARKERS))
    us = producer_of(world.init())
    world.add(us)
    world.end(us)
    (due,) = shard.markers_due()
    assert shard.decide_next_markers(frozenset()) == Decision((), (due,))
    assert shard.decide_next_markers({ID}) == Decision((), Delayed(MARKERS))
    assert world.run(shard.decide_markers_written(due, world.now_ms)) is ErrorCode.NONE
    assert shard.decide_next_markers(frozenset()) == Decision((), Delayed(MARKERS))
    assert shard.decide_markers_written(due, world.now_ms) == Decision.reply_only(ErrorCode.INVALID_TXN_STATE)


def test_markers_that_are_under_way_are_not_looked_at_one_by_one() -> None:
    """Else each of many transactions that end while their partitions are slow takes as long as all before it."""
    shard = World().shard
    prepared = [replace(transaction(State.PREPARE_COMMIT), transactional_id=f"t{number}") for number in range(20_000)]
    for each in prepared[:-2]:
        shard.apply(TransactionChanged(each))
    under_way = {each.transactional_id for each in prepared[:-2]}
    for each in prepared[-2:]:
        shard.apply(TransactionChanged(each))
    begun_s = time.process_time()
    for _ in range(200):
        dues = shard.decide_next_markers(under_way).reply
        assert isinstance(dues, tuple)
        assert [due.transactional_id for due in dues] == ["t19998", "t19999"]
    assert time.process_time() - begun_s < 0.5, "a look at all takes some ten milliseconds"


def test_idle_ids_are_forgotten() -> None:
    for state in State:
        world = World(transaction(state, updated_ms=0))
        is_idle = state in (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
        forgotten = [TransactionForgotten(ID)] if is_idle else []
        assert world.shard.decide_timer(EXPIRY, WEEK_MS - 1) == Decision(
            [], None, (Timer(EXPIRY, WEEK_MS - 1 + HOUR_MS),), is_whole=False
        )
        decision = world.shard.decide_timer(EXPIRY, WEEK_MS)
        assert decision == Decision(forgotten, None, (Timer(EXPIRY, WEEK_MS + HOUR_MS),), is_whole=False)
        world.run(decision)
        assert (ID in world.shard.transactions) is not is_idle


def test_very_many_idle_ids_are_forgotten_in_several_parts() -> None:
    idle = [replace(transaction(updated_ms=0), transactional_id=f"id-{n}") for n in range(FORGOTTEN_IDS_MAX + 2)]
    world = World(*idle)
    decision = world.shard.decide_expiry(WEEK_MS)
    assert (len(decision.records), decision.timers) == (FORGOTTEN_IDS_MAX, ())
    for fact in decision.records:
        world.shard.apply(fact)
    used, left = idle[-1].transactional_id, idle[-2].transactional_id
    world.shard.transactions[used] = replace(idle[-1], updated_ms=WEEK_MS)
    assert decision.then is not None
    last = decision.then(WEEK_MS)
    assert last == Decision([TransactionForgotten(left)], None, (Timer(EXPIRY, WEEK_MS + HOUR_MS),), is_whole=False)
    assert not decision.is_whole, "more of them than a batch holds must not end expiry"

    long_ids = [replace(transaction(updated_ms=0), transactional_id=f"{n}" * 100_000) for n in range(9)]
    decision = World(*long_ids).shard.decide_expiry(WEEK_MS)
    assert len(decision.records) == FORGOTTEN_BYTES_MAX // 100_000 + 1


@on_a_loop
async def test_expiry_of_which_a_slice_failed_is_done_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.coordinator.runtime.TIMER_RETRY_MS", 1)
    shard = TransactionShard(TransactionLimits(id_expiration_ms=0, expiry_interval_ms=1))
    many = FORGOTTEN_IDS_MAX + 2
    for number in range(many):
        shard.apply(TransactionChanged(replace(transaction(updated_ms=0), transactional_id=f"id-{number}")))
    sizes_at_failure: list[int] = []

    def fail_once(self: TransactionShard, fact: Fact) -> CoordinatorRecord | None:
        if len(self.transactions) < many and not sizes_at_failure:
            sizes_at_failure.append(len(self.transactions))
            raise ValueError("a mistake")
        return encode(self, fact)

    encode = TransactionShard.encode
    monkeypatch.setattr(TransactionShard, "encode", fail_once)
    runtime = Runtime(shard, MemoryJournal(), clock=SystemClock())
    runtime.write(lambda shard, now_ms: shard.decide_started(now_ms), lambda _: None)
    while shard.transactions:  # noqa: ASYNC110 - nobody tells of it
        await asyncio.sleep(0.001)
    assert sizes_at_failure == [many - FORGOTTEN_IDS_MAX]
    runtime.stop()


def test_ids_that_stay_are_looked_at_in_several_parts_too() -> None:
    kept = [replace(transaction(updated_ms=0), transactional_id=f"id-{n}") for n in range(EXPIRY_LOOKS_MAX + 1)]
    decision = World(*kept).shard.decide_expiry(1)
    assert (decision.records, decision.timers) == ([], ())
    assert decision.then is not None
    assert decision.then(1) == Decision([], None, (Timer(EXPIRY, 1 + HOUR_MS),), is_whole=False)


def test_a_forgotten_id_begins_anew_with_another_producer_id() -> None:
    world = World()
    before = world.init()
    world.run(world.shard.decide_expiry(world.now_ms + WEEK_MS))
    assert world.restarted().shard.transactions == {}
    after = world.init()
    assert after.error is ErrorCode.NONE
    assert after.producer_id != before.producer_id


def test_limits_come_from_the_configuration() -> None:
    config = BrokerConfig.of({"transaction.max.timeout.ms": "5", "transaction.two.phase.commit.enable": "true"})
    limits = TransactionLimits.of(config, transaction_version=1)
    assert limits == TransactionLimits(5, WEEK_MS, HOUR_MS, True, 1)


def test_old_clients_hear_of_an_invalid_epoch_instead() -> None:
    fenced, told = ErrorCode.PRODUCER_FENCED, error_for_client
    assert told(fenced, ApiKey.INIT_PRODUCER_ID, 3) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert told(fenced, ApiKey.INIT_PRODUCER_ID, 4) is fenced
    assert told(fenced, ApiKey.END_TXN, 1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert told(fenced, ApiKey.END_TXN, 2) is fenced
    assert told(ErrorCode.INVALID_TXN_STATE, ApiKey.END_TXN, 0) is ErrorCode.INVALID_TXN_STATE


def test_a_marker_in_the_log_states_nothing() -> None:
    """WriteTxnMarkers may name any partition, also one of the coordinator's own."""
    marker = Marker(is_commit=True, coordinator_epoch=0)
    assert World().shard.decode(StoredRecord(memoryview(b""), None, marker=marker)) is None
