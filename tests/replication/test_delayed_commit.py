"""Who waits for records to be committed is answered once, when it is known of all partitions or too late."""

from __future__ import annotations

from asyncio import get_running_loop, sleep
from pathlib import Path

from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset
from moldau.replication.delayed_commit import DelayedCommit
from moldau.replication.partition import LeaderAndEpoch, Partition
from tests.coordinator.loops import on_a_loop
from tests.log.samples import NOW_MS, batch
from tests.replication.replicated import ALICE, BOB, LEADER, assigned, fetch, fetch_all, replicated

DAY_MS = 24 * 60 * 60 * 1000
TIMED_OUT = ErrorCode.REQUEST_TIMED_OUT


def two(folder: Path) -> tuple[Partition, Partition]:
    """Two partitions with a record each that nobody has fetched."""
    made = (replicated(folder / "a"), replicated(folder / "b"))
    for partition in made:
        partition.append(batch([b"v"]), now_ms=NOW_MS)
    return made


def delayed(*partitions: Partition, timeout_ms: int = DAY_MS) -> DelayedCommit:
    waits = [(each, each.log.end_offset) for each in partitions]
    return DelayedCommit(waits, timeout_ms=timeout_ms, loop=get_running_loop())


@on_a_loop
async def test_it_is_answered_when_all_partitions_have_committed(tmp_path: Path) -> None:
    first, second = two(tmp_path)
    waiting = delayed(first, second)
    fetch_all(first)
    assert not waiting.answer.done()
    fetch(second, ALICE, 1)
    assert waiting.errors == [ErrorCode.NONE, TIMED_OUT]
    fetch(second, BOB, 1)
    assert await waiting.answer == [ErrorCode.NONE, ErrorCode.NONE]
    assert not first.commit_watchers
    assert not second.commit_watchers


@on_a_loop
async def test_what_is_not_committed_in_time_has_timed_out(tmp_path: Path) -> None:
    first, second = two(tmp_path)
    waiting = delayed(first, second, timeout_ms=1)
    fetch_all(second)
    assert await waiting.answer == [TIMED_OUT, ErrorCode.NONE]
    assert not first.commit_watchers
    fetch_all(first)
    assert waiting.errors == [TIMED_OUT, ErrorCode.NONE], "the answer was given"


@on_a_loop
async def test_no_time_at_all_is_too_little(tmp_path: Path) -> None:
    first, _ = two(tmp_path)
    assert await delayed(first, timeout_ms=-5).answer == [TIMED_OUT]


@on_a_loop
async def test_nothing_is_acknowledged_while_too_few_are_in_sync(tmp_path: Path) -> None:
    first, _ = two(tmp_path)
    waiting = delayed(first)
    later = NOW_MS + DAY_MS
    change = first.shrink_isr(later)
    assert change is not None
    first.isr_changed(change, assigned(LEADER, partition_epoch=1), now_ms=later)
    assert not waiting.answer.done()
    back = fetch(first, ALICE, 1, now_ms=later)
    assert back is not None
    first.isr_changed(back, assigned(LEADER, ALICE, partition_epoch=2), now_ms=later)
    assert await waiting.answer == [ErrorCode.NONE]


@on_a_loop
async def test_it_is_answered_when_another_broker_leads(tmp_path: Path) -> None:
    first, second = two(tmp_path)
    waiting = delayed(first, second)
    first.lead(LeaderAndEpoch(ALICE, 1), assigned(partition_epoch=1), now_ms=NOW_MS)
    second.log.offline = "Input/output error"
    second.go_offline()
    assert await waiting.answer == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR]


@on_a_loop
async def test_two_waits_for_one_partition(tmp_path: Path) -> None:
    first, _ = two(tmp_path)
    first.append(batch([b"w"]), now_ms=NOW_MS)
    waiting = DelayedCommit([(first, Offset(1)), (first, Offset(2))], timeout_ms=DAY_MS, loop=get_running_loop())
    fetch(first, ALICE, 2)
    fetch(first, BOB, 1)
    assert waiting.errors == [ErrorCode.NONE, TIMED_OUT]
    fetch(first, BOB, 2)
    assert await waiting.answer == [ErrorCode.NONE, ErrorCode.NONE]


@on_a_loop
async def test_who_goes_away_watches_no_longer(tmp_path: Path) -> None:
    first, second = two(tmp_path)
    waiting = delayed(first, second)
    waiting.answer.cancel()
    await sleep(0)
    assert not first.commit_watchers
    assert not second.commit_watchers
