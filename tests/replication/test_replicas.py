"""The replicas of a partition as its leader sees them, without log, clock or controller."""

from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset
from moldau.replication.assignment import Assignment, InSyncReplica, ReplicationTerms
from moldau.replication.replicas import UNCOMMITTED_APPENDS_MAX, Replicas

LEADER, ALICE, BOB = 1, 2, 3
LAG_MS = 10_000
EPOCH = 5


class World:
    """A leader with two followers, its log's end and its clock."""

    def __init__(self, isr: set[int] | None = None, *, end: int = 0, min_isr: int = 2) -> None:
        self.fenced: set[int] = set()
        self.now_ms = 1_000_000
        self.end = Offset(end)
        self.high_watermark = Offset(0)
        self.min_isr = min_isr
        self.replicas = Replicas(LEADER, ReplicationTerms(LAG_MS, lambda broker_id, _: broker_id not in self.fenced))
        self.assign(isr or {LEADER, ALICE, BOB})

    def assign(
        self, isr: set[int], *, leader_epoch: int = EPOCH, partition_epoch: int = 0, offline: set[int] | None = None
    ) -> None:
        self.replicas.assign(
            Assignment((LEADER, ALICE, BOB), frozenset(isr), partition_epoch, frozenset(offline or ())),
            leader_epoch=leader_epoch,
            end_offset=self.end,
            high_watermark=self.high_watermark,
            now_ms=self.now_ms,
        )
        self.advance()

    def advance(self) -> Offset:
        found = self.replicas.high_watermark(self.end, min_insync_replicas=self.min_isr, now_ms=self.now_ms)
        if found is not None and found > self.high_watermark:
            self.high_watermark = found
        return self.high_watermark

    def append(self, count: int = 1) -> Offset:
        self.end = Offset(self.end + count)
        self.replicas.appended(self.end, 100 * count)
        return self.advance()

    def fetch(self, broker_id: int, offset: int, *, broker_epoch: int = 7) -> Offset:
        self.replicas.followers[broker_id].fetched(
            Offset(offset),
            log_start_offset=Offset(0),
            leader_end_offset=self.end,
            broker_epoch=broker_epoch,
            now_ms=self.now_ms,
        )
        return self.advance()

    def pass_ms(self, ms: int) -> None:
        self.now_ms += ms

    def expand(self, broker_id: int) -> object:
        return self.replicas.decide_expand(broker_id, high_watermark=self.high_watermark)

    def acknowledgement(self, offset: int) -> ErrorCode | None:
        return self.replicas.acknowledgement(
            Offset(offset), high_watermark=self.high_watermark, min_insync_replicas=self.min_isr
        )


def test_what_all_in_sync_replicas_have_is_committed() -> None:
    world = World()
    assert world.append(10) == 0
    assert world.fetch(ALICE, 10) == 0
    assert world.fetch(BOB, 4) == 4
    assert world.fetch(BOB, 10) == 10


def test_a_lone_in_sync_replica_commits_by_itself() -> None:
    world = World({LEADER}, min_isr=1)
    assert world.append(3) == 3


def test_nothing_is_committed_with_too_few_in_sync() -> None:
    world = World({LEADER})
    assert world.append(3) == 0
    assert world.replicas.is_under_min_isr(2)


def test_a_partition_is_not_asked_for_more_replicas_than_it_has() -> None:
    world = World(min_isr=5)
    world.append()
    world.fetch(ALICE, 1)
    assert world.fetch(BOB, 1) == 1
    assert not world.replicas.is_under_min_isr(5)


def test_a_replica_that_is_caught_up_is_waited_for_before_it_is_in_the_isr() -> None:
    """Under a steady stream of writes it would never reach a high watermark that runs ahead of it."""
    world = World({LEADER, ALICE})
    world.append(10)
    world.fetch(ALICE, 10)
    world.fetch(BOB, 10)
    world.append(1)
    assert world.fetch(ALICE, 11) == 10
    assert world.fetch(BOB, 11) == 11


def test_but_not_one_that_could_not_join() -> None:
    world = World({LEADER, ALICE})
    world.fenced = {BOB}
    world.append(10)
    world.fetch(BOB, 5)
    assert world.fetch(ALICE, 10) == 10


def test_a_replica_joins_when_it_has_what_is_committed() -> None:
    world = World({LEADER, ALICE})
    world.append(10)
    world.fetch(ALICE, 8)
    world.fetch(BOB, 7)
    assert world.expand(BOB) is None
    world.fetch(BOB, 8, broker_epoch=9)
    change = world.replicas.decide_expand(BOB, high_watermark=world.high_watermark)
    assert change is not None
    expected = (InSyncReplica(LEADER), InSyncReplica(ALICE, 7), InSyncReplica(BOB, 9))
    assert (change.isr, change.leader_epoch, change.partition_epoch) == (expected, EPOCH, 0)


def test_a_replica_joins_only_with_all_that_came_before_this_epoch() -> None:
    """The earlier leader may have committed more than this one knows of."""
    world = World({LEADER, ALICE}, end=10)
    assert world.high_watermark == 0
    world.fetch(BOB, 6)
    assert world.expand(BOB) is None
    world.fetch(BOB, 10)
    assert world.expand(BOB) is not None


def test_a_fenced_replica_or_one_that_never_fetched_does_not_join() -> None:
    world = World({LEADER, ALICE})
    assert world.expand(BOB) is None
    world.fetch(BOB, 0)
    world.fenced = {BOB}
    assert world.expand(BOB) is None
    world.fenced = set()
    assert world.expand(BOB) is not None


def test_a_replica_without_a_directory_is_not_waited_for_until_it_has_one() -> None:
    world = World()
    world.assign({LEADER, ALICE}, partition_epoch=1, offline={BOB})
    world.fetch(BOB, 0)
    world.append(10)
    assert world.fetch(ALICE, 10) == 10
    world.fetch(BOB, 10)
    assert world.expand(BOB) is None
    world.assign({LEADER, ALICE}, partition_epoch=2)
    assert world.expand(BOB) is not None


def test_a_joining_replica_counts_before_the_controller_agreed() -> None:
    world = World({LEADER, ALICE})
    world.fetch(BOB, 0)
    change = world.replicas.decide_expand(BOB, high_watermark=world.high_watermark)
    assert change is not None
    world.replicas.ask(change)
    assert world.replicas.isr == {LEADER, ALICE}
    world.append()
    world.pass_ms(2 * LAG_MS)  # it is not caught up any more, and still may be elected
    assert world.fetch(ALICE, 1) == 0
    assert world.replicas.agreed(change, Assignment((LEADER, ALICE, BOB), frozenset({LEADER, ALICE, BOB}), 1))
    assert world.replicas.isr == {LEADER, ALICE, BOB}
    assert world.advance() == 0
    assert world.fetch(BOB, 1) == 1


def test_a_leaving_replica_counts_until_the_controller_agreed() -> None:
    world = World()
    world.append()
    world.fetch(ALICE, 1)
    world.pass_ms(LAG_MS + 1)
    change = world.replicas.decide_shrink(world.end, now_ms=world.now_ms)
    assert change is not None
    assert [each.broker_id for each in change.isr] == [LEADER, ALICE]
    world.replicas.ask(change)
    assert world.advance() == 0
    assert world.replicas.agreed(change, Assignment((LEADER, ALICE, BOB), frozenset({LEADER, ALICE}), 1))
    assert world.advance() == 1


def test_a_replica_with_everything_stays_however_long_it_is_silent() -> None:
    world = World()
    world.append()
    world.fetch(ALICE, 1)
    world.fetch(BOB, 1)
    world.pass_ms(10 * LAG_MS)
    assert world.replicas.decide_shrink(world.end, now_ms=world.now_ms) is None


def test_a_replica_is_in_sync_by_its_fetch_before_the_last() -> None:
    """Each fetch asks for what was the end at the fetch before: it is never at the end, and never late."""
    world = World()
    for _ in range(10):
        end = world.end
        world.append()
        world.pass_ms(LAG_MS - 1)
        for broker_id in (ALICE, BOB):
            world.fetch(broker_id, end)
        assert world.replicas.decide_shrink(world.end, now_ms=world.now_ms) is None
    world.append()
    world.pass_ms(2 * LAG_MS)
    assert world.replicas.decide_shrink(world.end, now_ms=world.now_ms) is not None


def test_a_replica_that_never_fetched_is_late_however_young_the_clock_is() -> None:
    """It counts from the start of the machine, which may have been a moment ago."""
    world = World({LEADER, ALICE})
    world.now_ms = 5
    world.assign({LEADER, ALICE}, leader_epoch=EPOCH + 1)
    world.replicas.followers[BOB].broker_epoch = 7
    world.append()
    assert world.fetch(ALICE, 1) == 1


@pytest.mark.parametrize(("epochs", "committed"), [(1, 10), (2, 0)])
def test_what_a_follower_had_counts_no_more_once_another_broker_may_have_led(epochs: int, committed: int) -> None:
    """Images may be skipped: between two epochs of this leader, followers may have truncated for another one."""
    world = World()
    world.append(10)
    world.fetch(BOB, 10)
    world.assign({LEADER, ALICE, BOB}, leader_epoch=EPOCH + epochs, partition_epoch=1)
    assert world.fetch(ALICE, 10) == committed
    assert world.fetch(BOB, 10) == 10


def test_one_change_of_the_isr_at_a_time() -> None:
    world = World({LEADER, ALICE})
    world.append()
    world.fetch(BOB, 0)
    change = world.replicas.decide_expand(BOB, high_watermark=world.high_watermark)
    assert change is not None
    world.replicas.ask(change)
    world.pass_ms(2 * LAG_MS)
    assert world.replicas.decide_shrink(world.end, now_ms=world.now_ms) is None
    assert world.expand(BOB) is None


@pytest.mark.parametrize("error", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_a_change_that_was_not_made_is_taken_back(error: ErrorCode) -> None:
    world = World({LEADER, ALICE})
    world.fetch(BOB, 0)
    change = world.replicas.decide_expand(BOB, high_watermark=world.high_watermark)
    assert change is not None
    world.replicas.ask(change)
    assert not world.replicas.refused(change, error)
    assert world.replicas.pending is None
    assert world.replicas.maximal_isr == {LEADER, ALICE}


def test_a_change_that_may_have_been_made_counts_until_the_image_tells() -> None:
    world = World({LEADER, ALICE})
    world.fetch(BOB, 0)
    change = world.replicas.decide_expand(BOB, high_watermark=world.high_watermark)
    assert change is not None
    world.replicas.ask(change)
    assert world.replicas.refused(change, ErrorCode.NOT_CONTROLLER)
    assert not world.replicas.refused(change, ErrorCode.INVALID_UPDATE_VERSION)
    assert world.replicas.maximal_isr == {LEADER, ALICE, BOB}
    world.assign({LEADER, ALICE}, partition_epoch=1)
    assert world.replicas.pending is None
    assert world.replicas.maximal_isr == {LEADER, ALICE}
    assert not world.replicas.agreed(change, Assignment((LEADER, ALICE, BOB), frozenset({LEADER}), 2)), "too late"


def test_a_producer_hears_that_the_isr_shrank_after_its_records_were_taken() -> None:
    world = World({LEADER, ALICE})
    world.append()
    assert world.acknowledgement(1) is None
    world.fetch(ALICE, 1)
    assert world.acknowledgement(1) is ErrorCode.NONE
    world.assign({LEADER}, partition_epoch=1)
    assert world.acknowledgement(1) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_the_bytes_of_each_append_are_committed_once() -> None:
    world = World()
    world.append(2)
    world.append(3)
    assert [world.replicas.committed_bytes(Offset(each)) for each in (1, 2, 4, 5, 5)] == [0, 200, 0, 300, 0]


def test_appends_that_are_not_committed_for_long_take_no_memory() -> None:
    world = World({LEADER})
    for _ in range(3 * UNCOMMITTED_APPENDS_MAX):
        world.append()
    assert len(world.replicas._uncommitted) == UNCOMMITTED_APPENDS_MAX
    assert world.replicas.committed_bytes(world.end) >= 300 * UNCOMMITTED_APPENDS_MAX


def test_a_new_epoch_of_the_same_leader_forgets_when_others_were_caught_up() -> None:
    world = World({LEADER, ALICE})
    world.fetch(BOB, 0)
    world.append()
    world.assign({LEADER, ALICE}, leader_epoch=EPOCH + 1, partition_epoch=1)
    assert world.fetch(ALICE, 1) == 1, "nobody waits for Bob, who has not fetched in this epoch"
