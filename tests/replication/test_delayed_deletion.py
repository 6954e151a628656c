"""Who deletes records is answered when all followers that live have deleted them, too, or too late."""

from __future__ import annotations

from asyncio import get_running_loop, sleep
from pathlib import Path

from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_OFFSET, Offset
from moldau.replication.delayed_deletion import DelayedDeletion
from moldau.replication.partition import LeaderAndEpoch, Partition
from tests.coordinator.loops import on_a_loop
from tests.log.samples import NOW_MS, batch
from tests.replication.replicated import ALICE, BOB, LEADER, assigned, fetch, fetch_all, replicated

DAY_MS = 24 * 60 * 60 * 1000


def ten(folder: Path, dead: frozenset[int] | set[int] = frozenset()) -> Partition:
    """Ten records that both followers have."""
    partition = replicated(folder, is_alive=lambda each: each not in dead)
    for _ in range(10):
        partition.append(batch([b"v"]), now_ms=NOW_MS)
    fetch_all(partition)
    return partition


def delete(partition: Partition, before: int, *, timeout_ms: int = DAY_MS) -> DelayedDeletion:
    offset = partition.delete_records(Offset(before), now_ms=NOW_MS)
    assert not isinstance(offset, ErrorCode)
    return DelayedDeletion(partition, offset, timeout_ms=timeout_ms, loop=get_running_loop())


def is_watched(partition: Partition) -> bool:
    replicas = partition.replicas
    return bool(partition.commit_watchers or (replicas is not None and replicas.low_watermark_watchers))


def test_the_low_watermark_is_the_least_log_start_of_those_that_live(tmp_path: Path) -> None:
    dead: set[int] = set()
    partition = ten(tmp_path, dead)
    partition.delete_records(Offset(5), now_ms=NOW_MS)
    fetch(partition, ALICE, 10, start=3)
    assert partition.low_watermark == 0
    fetch(partition, BOB, 10, start=4)
    assert partition.low_watermark == 3
    dead.add(ALICE)
    assert partition.low_watermark == 4
    dead.add(BOB)
    assert partition.low_watermark == 5


def test_a_follower_that_has_not_fetched_may_have_everything(tmp_path: Path) -> None:
    partition = replicated(tmp_path)
    assert partition.low_watermark == NO_OFFSET


def test_a_follower_that_begins_later_than_its_leader_does_not_raise_it(tmp_path: Path) -> None:
    partition = ten(tmp_path)
    for each in (ALICE, BOB):
        fetch(partition, each, 10, start=7)
    assert partition.low_watermark == 0


@on_a_loop
async def test_it_is_answered_when_all_followers_have_deleted(tmp_path: Path) -> None:
    partition = ten(tmp_path)
    waiting = delete(partition, 5)
    fetch(partition, ALICE, 10, start=5)
    fetch(partition, BOB, 10, start=4)
    assert not waiting.answer.done()
    fetch(partition, BOB, 10, start=5)
    assert await waiting.answer == (ErrorCode.NONE, 5)
    await sleep(0)
    assert not is_watched(partition)


@on_a_loop
async def test_the_low_watermark_may_be_beyond_what_was_asked_for(tmp_path: Path) -> None:
    partition = ten(tmp_path)
    waiting = delete(partition, 5)
    delete(partition, 8).answer.cancel()
    fetch(partition, ALICE, 10, start=8)
    fetch(partition, BOB, 10, start=8)
    assert await waiting.answer == (ErrorCode.NONE, 8)


@on_a_loop
async def test_what_is_not_deleted_in_time_has_timed_out(tmp_path: Path) -> None:
    partition = ten(tmp_path)
    waiting = delete(partition, 5, timeout_ms=1)
    fetch(partition, ALICE, 10, start=5)
    assert await waiting.answer == (ErrorCode.REQUEST_TIMED_OUT, 0)
    await sleep(0)
    assert not is_watched(partition)


@on_a_loop
async def test_a_follower_that_is_fenced_is_waited_for_no_longer(tmp_path: Path) -> None:
    dead: set[int] = set()
    partition = ten(tmp_path, dead)
    waiting = delete(partition, 5)
    fetch(partition, ALICE, 10, start=5)
    dead.add(BOB)
    assert not waiting.answer.done()
    partition.lead(LeaderAndEpoch(LEADER, 1), assigned(LEADER, ALICE, partition_epoch=1), now_ms=NOW_MS)
    assert await waiting.answer == (ErrorCode.NONE, 5)


@on_a_loop
async def test_a_fenced_follower_that_was_in_no_isr_is_noticed_by_the_next_look_at_the_others(tmp_path: Path) -> None:
    """Nothing of the partition changes then, so no new assignment tells of it."""
    dead: set[int] = set()
    partition = ten(tmp_path, dead)
    waiting = delete(partition, 5)
    fetch(partition, ALICE, 10, start=5)
    dead.add(BOB)
    partition.shrink_isr(NOW_MS)
    assert await waiting.answer == (ErrorCode.NONE, 5)


@on_a_loop
async def test_a_last_look_is_taken_when_the_time_is_up(tmp_path: Path) -> None:
    dead: set[int] = set()
    partition = ten(tmp_path, dead)
    waiting = delete(partition, 5, timeout_ms=1)
    dead.update((ALICE, BOB))
    assert await waiting.answer == (ErrorCode.NONE, 5)


@on_a_loop
async def test_it_is_answered_when_another_broker_leads(tmp_path: Path) -> None:
    partition = ten(tmp_path)
    waiting = delete(partition, 5)
    partition.lead(LeaderAndEpoch(ALICE, 1), assigned(partition_epoch=1), now_ms=NOW_MS)
    assert await waiting.answer == (ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_OFFSET)


@on_a_loop
async def test_it_is_answered_when_the_log_directory_fails(tmp_path: Path) -> None:
    partition = ten(tmp_path)
    waiting = delete(partition, 5)
    partition.log.offline = "Input/output error"
    partition.go_offline()
    assert await waiting.answer == (ErrorCode.KAFKA_STORAGE_ERROR, NO_OFFSET)


@on_a_loop
async def test_it_is_answered_when_no_follower_is_left(tmp_path: Path) -> None:
    partition = ten(tmp_path)
    waiting = delete(partition, 5)
    partition.lead(LeaderAndEpoch(LEADER, 1), None, now_ms=NOW_MS)
    assert await waiting.answer == (ErrorCode.NONE, 5)


@on_a_loop
async def test_who_goes_away_watches_no_longer(tmp_path: Path) -> None:
    partition = ten(tmp_path)
    waiting = delete(partition, 5)
    assert is_watched(partition)
    waiting.answer.cancel()
    await sleep(0)
    assert not is_watched(partition)
