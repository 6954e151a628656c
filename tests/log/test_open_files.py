"""A bounded number of segments is awake, the ones that are used, and the others lose nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from moldau.core.ids import Offset, TopicPartition
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.open_files import GROWTH_S, OpenFiles, segments_max
from moldau.log.partition_log import PartitionLog
from tests.log.samples import NOW_MS, batch, config, log_in


def logs(directories: LogDirectories, count: int) -> list[PartitionLog]:
    return [log_in(directories, TopicPartition("orders", index)) for index in range(count)]


def append(log: PartitionLog, value: bytes) -> None:
    log.append_as_leader(batch([value]), leader_epoch=0, now_ms=NOW_MS)


def first_bytes(log: PartitionLog) -> bytes:
    return log.read(Offset(0), bytes_max=1 << 20, end=log.end_offset, one_batch=True).read()


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_many_logs_share_few_descriptors_and_none_loses_a_record(tmp_path: Path) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    directories.open_files = OpenFiles(limit=8)
    many = logs(directories, 100)
    before = open_descriptors()
    for round_number in range(3):
        for index, log in enumerate(many):
            append(log, b"%d of %d" % (round_number, index))
            assert open_descriptors() - before <= 8
    for index, log in enumerate(many):
        read = first_bytes(log)
        assert all(b"%d of %d" % (round_number, index) in read for round_number in range(3))
    assert len(directories.open_files) <= 8
    directories.close()


def test_what_is_in_use_stays_awake(tmp_path: Path) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    directories.open_files = OpenFiles(limit=4)
    busy, *others = logs(directories, 40)
    append(busy, b"first")
    file = busy.active.file
    for log in others:
        append(log, b"once")
        append(busy, b"again")
    assert busy.active.file is file
    directories.close()


def test_a_range_in_flight_outlives_the_rest_of_its_segment(tmp_path: Path) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    directories.open_files = OpenFiles(limit=2)
    first, *others = logs(directories, 10)
    append(first, b"kept")
    held = first.read(Offset(0), bytes_max=1 << 20, end=first.end_offset, one_batch=True)
    for log in others:
        append(log, b"x")
    assert not first.active.awake
    assert b"kept" in held.read()
    directories.close()


@pytest.mark.parametrize("is_rolled", [False, True])
def test_times_of_a_segment_that_rests_are_found_after_a_stop(tmp_path: Path, is_rolled: bool) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    directories.open_files = OpenFiles(limit=1)
    one, two = logs(directories, 2)
    for number in range(4):  # the last one is in no index yet
        records = batch([bytes(3_000)], timestamps=[NOW_MS + number])
        one.append_as_leader(records, leader_epoch=0, now_ms=NOW_MS)
    append(two, b"the other rests for it")
    assert not one.active.awake
    if is_rolled:
        one.roll(NOW_MS)
    directories.close()
    again = LogDirectories.open([tmp_path], node_id=1)
    (found,) = logs(again, 1)
    assert found.offset_for_timestamp(NOW_MS + 3) == (NOW_MS + 3, 3, 0)
    assert found.max_timestamp() == (NOW_MS + 3, 3, 0)
    again.close()


def test_a_segment_that_cannot_rest_stays_awake_and_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    directories.open_files = OpenFiles(limit=1)
    one, two = logs(directories, 2)
    append(one, b"1")

    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(type(one.active), "rest", lambda _: full())
        append(two, b"2")
    assert one.active.awake
    assert two.active.awake
    directories.close()


def test_without_descriptors_half_of_the_segments_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    directories.open_files = OpenFiles(limit=64)
    *many, last = logs(directories, 61)
    for log in many:
        append(log, b"x")
        append(log, b"in use")
    open_file, refusals = os.open, [OSError(errno.EMFILE, "Too many open files")]

    def exhausted(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if refusals and path.endswith(".log"):
            raise refusals.pop()
        return open_file(path, flags, mode, dir_fd=dir_fd)

    with monkeypatch.context() as process:
        process.setattr(os, "open", exhausted)
        append(last, b"written all the same")
    assert b"written all the same" in first_bytes(last)
    assert sum(log.active.awake for log in (*many, last)) == len(directories.open_files) <= 33
    assert last.active.awake
    directories.close()


def test_the_limit_grows_back_when_the_lack_of_descriptors_is_over(tmp_path: Path) -> None:
    now_s = [0.0]
    directories = LogDirectories.open([tmp_path], node_id=1)
    files = directories.open_files = OpenFiles(limit=64, clock_s=lambda: now_s[0])
    many = logs(directories, 80)
    files.shrink()
    grown = []
    for _ in range(5):
        for log in many:
            append(log, b"x")
            append(log, b"in use")
        grown.append((files.limit, len(files)))
        now_s[0] += GROWTH_S
    assert grown == [(32, 32), (48, 48), (64, 64), (64, 64), (64, 64)]
    files.shrink()
    for log in many:
        append(log, b"x")
    assert files.limit == 32, "not before some time without a lack"
    directories.close()


def test_connections_and_segments_share_the_limit_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (1_024, 1_024))
    assert segments_max(512) == 416
    assert segments_max(1_024) == 16
    monkeypatch.setattr("resource.getrlimit", lambda _: (1 << 30, 1 << 30))
    assert segments_max(1 << 29) == 16_384


def rolled_log(directories: LogDirectories, *, batches: int) -> PartitionLog:
    """One whose first segment has so many batches, each with an entry in the index, and whose last one has one."""
    small = config(index_interval_bytes=1)
    partition = TopicPartition("orders", 0)
    log = log_in(directories, partition, used=small)
    for number in range(batches):
        append(log, b"%d" % number)
    log.roll(NOW_MS)
    append(log, b"last")
    return log


def one_batch_at(log: PartitionLog, offset: int) -> bytes:
    return log.read(Offset(offset), bytes_max=1, end=log.end_offset, one_batch=True).read()


def test_a_rolled_segment_stays_open_for_its_readers_and_is_found_by_a_part_of_its_index(tmp_path: Path) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    log = rolled_log(directories, batches=6_000)
    rolled = log.segments[0]
    orders = ([*range(6_000)], [*range(5_999, -1, -1)], [number * 7_919 % 6_000 for number in range(6_000)])
    for offset in (offset for order in orders for offset in order):
        assert b"%d" % offset in one_batch_at(log, offset)
        file = rolled.file
        assert file is not None
        assert one_batch_at(log, offset) == one_batch_at(log, offset)
        assert rolled.file is file
    assert not rolled.awake
    assert rolled.offset_index.entries.first is None, "the whole index is in memory"
    directories.close()


def test_a_rolled_segment_that_was_read_can_be_truncated_and_written_to(tmp_path: Path) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    log = rolled_log(directories, batches=20)
    one_batch_at(log, 3)
    log.truncate_to(Offset(5), now_ms=NOW_MS)
    append(log, b"after it")
    assert b"after it" in one_batch_at(log, 5)
    directories.close()


def test_a_segment_that_is_gone_keeps_no_file_open(tmp_path: Path) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    log = rolled_log(directories, batches=20)
    one_batch_at(log, 3)
    rolled = log.segments[0]
    log.advance_log_start(log.end_offset, now_ms=NOW_MS)
    assert rolled not in log.segments
    assert rolled.file is None
    directories.close()
