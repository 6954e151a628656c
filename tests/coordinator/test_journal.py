from __future__ import annotations

from pathlib import Path

import pytest

from moldau.coordinator.journal import PartitionJournal, Producer, Stored
from moldau.core.errors import ApiError, ErrorCode
from moldau.log.markers import encode_marker
from moldau.log.producer_state import Marker
from moldau.replication.partition import Leadership, Partition
from tests.coordinator.partitions import new_partition, reopened

PLENTY = 1_000_000
COMMIT = [encode_marker(is_commit=True, coordinator_epoch=3)]


def everything(journal: PartitionJournal, bytes_max: int = PLENTY) -> list[Stored]:
    found: list[Stored] = []
    offset = journal.start_offset
    while offset < journal.committed_offset:
        chunk = journal.read(offset, bytes_max)
        assert chunk.next_offset > offset
        found += chunk.records
        offset = chunk.next_offset
    return found


def plain(*pairs: tuple[bytes, bytes | None]) -> list[Stored]:
    return [Stored(memoryview(key), None if value is None else memoryview(value)) for key, value in pairs]


@pytest.mark.parametrize("bytes_max", [1, 100, PLENTY])
def test_what_was_appended_is_read_back(tmp_path: Path, bytes_max: int) -> None:
    journal = PartitionJournal(new_partition(tmp_path))
    journal.append([(b"a", b"1"), (b"b", None)], 5)
    journal.append([(b"a", b"2")], 6)
    assert (journal.end_offset, journal.committed_offset) == (3, 3)
    assert everything(journal, bytes_max) == plain((b"a", b"1"), (b"b", None), (b"a", b"2"))


def test_after_a_crash_too(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    PartitionJournal(partition).append([(b"a", b"1")], 5)
    assert everything(PartitionJournal(reopened(partition))) == plain((b"a", b"1"))


def test_records_of_a_transaction_say_so(tmp_path: Path) -> None:
    journal = PartitionJournal(new_partition(tmp_path))
    producer = Producer(7, 0)
    journal.append([(b"a", b"1")], 5, producer)
    journal.append([(b"b", b"2")], 5)
    journal.append(COMMIT, 5, producer._replace(ends=True))
    in_transaction, beside, end = everything(journal)
    assert in_transaction == Stored(memoryview(b"a"), memoryview(b"1"), 7)
    assert beside == Stored(memoryview(b"b"), memoryview(b"2"))
    assert (end.producer_id, end.marker) == (7, Marker(True, 3, 0))


def test_a_fenced_producer_is_refused_and_leaves_no_trace(tmp_path: Path) -> None:
    journal = PartitionJournal(new_partition(tmp_path))
    journal.append([(b"a", b"1")], 5, Producer(7, 2))
    with pytest.raises(ApiError):
        journal.append([(b"a", b"2")], 5, Producer(7, 1))
    assert journal.end_offset == 1


def test_nobody_writes_after_another_broker_took_over(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    journal = PartitionJournal(partition)
    heard: list[bool] = []
    journal.watch(lambda: heard.append(journal.is_ours))
    partition.lead(Leadership(1, 1))
    partition.lead(Leadership(0, 2))
    assert heard == [False, False], "leading again is another life"
    with pytest.raises(ApiError) as refused:
        journal.append([(b"a", b"1")], 5)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_an_entry_must_fit_into_a_batch_and_into_a_segment(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    journal = PartitionJournal(partition)
    defaults = partition.log.config
    assert journal.entry_bytes_max == defaults.max_message_bytes < defaults.segment_bytes
    partition.log.update_config(defaults.override({"segment.bytes": "1048576", "max.message.bytes": "2000000"}))
    assert journal.entry_bytes_max == 1_048_576


def flushed_always(partition: Partition) -> PartitionJournal:
    partition.log.update_config(partition.log.config.override({"flush.messages": "1"}))
    return PartitionJournal(partition)


def test_the_disk_has_an_entry_before_anybody_hears_of_it_where_that_is_asked_for(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    PartitionJournal(partition).append([(b"a", b"1")], 5)
    assert partition.log.recovery_point == 0
    flushed_always(partition).append([(b"a", b"2")], 5)
    assert partition.log.recovery_point == partition.log.end_offset == 2


def test_a_disk_that_fails_then_is_a_refusal_though_the_entry_may_be_found_again(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    journal = flushed_always(partition)
    journal.append([(b"a", b"1")], 5)
    segment = Path(partition.log.active.path)
    segment.unlink()
    segment.symlink_to(segment)  # it can be written to where it is open, and not be found to be synced
    with pytest.raises(ApiError) as refused:
        journal.append([(b"a", b"2")], 5)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert journal.committed_offset == journal.end_offset == 2
