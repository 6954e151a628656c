from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from concurrent.futures import Future as Job
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.producing.flushing import Flusher
from moldau.coordinator.journal import PartitionJournal, StoredRecord, TransactionalProducer
from moldau.core.errors import ApiError, ErrorCode
from moldau.log.producers.end_transaction_marker import encode_marker
from moldau.log.producers.producer_state import Marker
from moldau.replication.partition import LeaderAndEpoch, Partition
from tests.coordinator.loops import on_a_loop
from tests.coordinator.partitions import flush_at_once, new_partition, reopened

PLENTY = 1_000_000
COMMIT = [encode_marker(is_commit=True, coordinator_epoch=3)]


def journal_of(partition: Partition) -> PartitionJournal:
    return PartitionJournal(partition, flush_at_once)


def everything(journal: PartitionJournal, bytes_max: int = PLENTY) -> list[StoredRecord]:
    found: list[StoredRecord] = []
    offset = journal.start_offset
    while offset < journal.committed_offset:
        chunk = journal.read(offset, bytes_max)
        assert chunk.next_offset > offset
        found += chunk.records
        offset = chunk.next_offset
    return found


def plain(*pairs: tuple[bytes, bytes | None]) -> list[StoredRecord]:
    return [StoredRecord(memoryview(key), None if value is None else memoryview(value)) for key, value in pairs]


@pytest.mark.parametrize("bytes_max", [1, 100, PLENTY])
def test_what_was_appended_is_read_back(tmp_path: Path, bytes_max: int) -> None:
    journal = journal_of(new_partition(tmp_path))
    journal.append([(b"a", b"1"), (b"b", None)], 5)
    journal.append([(b"a", b"2")], 6)
    assert (journal.end_offset, journal.committed_offset) == (3, 3)
    assert everything(journal, bytes_max) == plain((b"a", b"1"), (b"b", None), (b"a", b"2"))


def test_after_a_crash_too(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    journal_of(partition).append([(b"a", b"1")], 5)
    assert everything(journal_of(reopened(partition))) == plain((b"a", b"1"))


def test_records_of_a_transaction_say_so(tmp_path: Path) -> None:
    journal = journal_of(new_partition(tmp_path))
    producer = TransactionalProducer(7, 0)
    journal.append([(b"a", b"1")], 5, producer)
    journal.append([(b"b", b"2")], 5)
    journal.append(COMMIT, 5, producer._replace(ends=True))
    in_transaction, beside, end = everything(journal)
    assert in_transaction == StoredRecord(memoryview(b"a"), memoryview(b"1"), 7)
    assert beside == StoredRecord(memoryview(b"b"), memoryview(b"2"))
    assert (end.producer_id, end.marker) == (7, Marker(True, 3, 0))


def test_a_fenced_producer_is_refused_and_leaves_no_trace(tmp_path: Path) -> None:
    journal = journal_of(new_partition(tmp_path))
    journal.append([(b"a", b"1")], 5, TransactionalProducer(7, 2))
    with pytest.raises(ApiError):
        journal.append([(b"a", b"2")], 5, TransactionalProducer(7, 1))
    assert journal.end_offset == 1


def test_nobody_writes_after_another_broker_took_over(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    journal = journal_of(partition)
    heard: list[bool] = []
    journal.watch(lambda: heard.append(journal.is_ours))
    partition.lead(LeaderAndEpoch(1, 1))
    partition.lead(LeaderAndEpoch(0, 2))
    assert heard == [False, False], "leading again is another life"
    with pytest.raises(ApiError) as refused:
        journal.append([(b"a", b"1")], 5)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_an_entry_must_fit_into_a_batch_and_into_a_segment(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    journal = journal_of(partition)
    defaults = partition.log.config
    assert journal.entry_bytes_max == defaults.max_message_bytes < defaults.segment_bytes
    partition.log.update_config(defaults.override({"segment.bytes": "1048576", "max.message.bytes": "2000000"}))
    assert journal.entry_bytes_max == 1_048_576


class Disk(Executor):
    """Threads that are slow: a job is done when the test says so."""

    def __init__(self) -> None:
        self._jobs: list[tuple[Job[Any], Any]] = []

    def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Job[Any]:
        job: Job[Any] = Job()
        self._jobs.append((job, lambda: work(*args, **kwargs)))
        return job

    async def finish_one(self, is_heard: Callable[[], bool]) -> None:
        job, work = self._jobs.pop(0)
        try:
            job.set_result(work())
        except OSError as wrong:
            job.set_exception(wrong)
        while not is_heard():  # noqa: ASYNC110 - the loop carries the news on, within a few turns
            await asyncio.sleep(0)


def flushed_always(partition: Partition) -> tuple[PartitionJournal, Disk]:
    partition.log.update_config(partition.log.config.override({"flush.messages": "1"}))
    disk = Disk()
    return PartitionJournal(partition, Flusher(disk).flush), disk


@on_a_loop
async def test_an_entry_is_committed_when_the_disk_has_it_where_that_is_asked_for(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    journal_of(partition).append([(b"a", b"1")], 5)
    assert partition.log.recovery_point == 0
    journal, disk = flushed_always(partition)
    heard: list[int] = []
    journal.watch(lambda: heard.append(journal.committed_offset))
    journal.append([(b"a", b"2")], 5)
    assert (journal.committed_offset, journal.end_offset) == (1, 2)
    await disk.finish_one(lambda: journal.committed_offset == 2)
    assert partition.log.recovery_point == 2
    assert heard == [2, 2], "the append itself tells too"


@on_a_loop
async def test_entries_that_come_while_the_disk_works_share_the_next_fsync(tmp_path: Path) -> None:
    journal, disk = flushed_always(new_partition(tmp_path))
    for number in range(4):
        journal.append([(b"a", bytes([number]))], 5)
    assert journal.committed_offset == 0
    await disk.finish_one(lambda: journal.committed_offset == 1)
    await disk.finish_one(lambda: journal.committed_offset == journal.end_offset == 4)


@on_a_loop
async def test_a_disk_that_fails_then_is_a_failure_though_the_entry_may_be_found_again(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    journal, disk = flushed_always(partition)
    journal.append([(b"a", b"1")], 5)
    await disk.finish_one(lambda: journal.committed_offset == 1)
    segment = Path(partition.log.active.path)
    segment.unlink()
    segment.symlink_to(segment)  # it can be written to where it is open, and not be found to be synced
    journal.append([(b"a", b"2")], 5)
    assert journal.failure is None
    await disk.finish_one(lambda: journal.failure is ErrorCode.KAFKA_STORAGE_ERROR)
    assert (journal.committed_offset, journal.end_offset) == (1, 2)
