"""Appending, reading, rolling, truncating and flushing one log."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import Offset
from moldau.log.errors import LogError
from moldau.log.leader_epochs import EpochEnd, EpochStart
from moldau.log.partition_log import EMPTY, Appended, PartitionLog
from moldau.log.producers.end_transaction_marker import encode_marker
from moldau.log.producers.producer_state import Origin
from moldau.wire.batch import CONTROL, TRANSACTIONAL, Codec, Record, batches, build_batch, read_header
from tests.log.samples import EVERYTHING, NOW_MS, PARTITION, append, batch, config, contents, create, reopen

DAY_MS = 86_400_000


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def files(log: PartitionLog) -> set[str]:
    return set(os.listdir(log.path))


def end_transaction(log: PartitionLog, *, commit: bool, producer_id: int = 7) -> None:
    key, value = encode_marker(is_commit=commit, coordinator_epoch=0)
    marker = build_batch(
        [Record(0, NOW_MS, key, value)],
        base_offset=0,
        producer_id=producer_id,
        producer_epoch=0,
        attributes=TRANSACTIONAL | CONTROL,
    )
    log.append_as_leader(memoryview(marker), leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)


def test_a_new_log_has_kafkas_files(tmp_path: Path) -> None:
    log = create(tmp_path)
    name = "00000000000000000000"
    assert files(log) == {f"{name}.log", f"{name}.index", f"{name}.timeindex", "partition.metadata"}
    append(log, b"first")
    assert files(log) - {f"{name}.log", f"{name}.index", f"{name}.timeindex"} == {
        "partition.metadata",
        "leader-epoch-checkpoint",
    }


def test_appending_stamps_offset_and_epoch_and_keeps_the_rest(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, b"a", b"b")
    sent = batch([b"c", b"d"], codec=Codec.GZIP)
    before = bytes(sent)
    appended = log.append_as_leader(sent, leader_epoch=5, now_ms=NOW_MS)
    assert appended == Appended(Offset(2), Offset(3), -1, Offset(0))
    stored = log.read(Offset(2), bytes_max=EVERYTHING, end=log.end_offset, one_batch=True).read()
    assert stored[16:] == before[16:]
    assert (read_header(stored).base_offset, read_header(stored).leader_epoch) == (2, 5)


def test_a_batch_is_returned_whole_for_an_offset_inside_it(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, b"a", b"b", b"c")
    append(log, b"d")
    whole = log.read(Offset(0), bytes_max=EVERYTHING, end=log.end_offset, one_batch=True).read()
    assert log.read(Offset(2), bytes_max=EVERYTHING, end=log.end_offset, one_batch=True).read() == whole


def test_limits_cut_anywhere_but_in_the_first_batch_which_is_whole_on_demand(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, b"a" * 100)
    append(log, b"b" * 100)
    first = len(batch([b"a" * 100]))
    for offset in (0, 0, 1):  # the second read of an offset may take another way than the first
        start = Offset(offset)
        assert len(log.read(start, bytes_max=10, end=log.end_offset, one_batch=False)) == 0
        assert len(log.read(start, bytes_max=10, end=log.end_offset, one_batch=True)) == first
        assert len(log.read(start, bytes_max=0, end=log.end_offset, one_batch=True)) == first
        assert len(log.read(start, bytes_max=0, end=log.end_offset, one_batch=False)) == 0
    assert len(log.read(Offset(0), bytes_max=first + 5, end=log.end_offset, one_batch=True)) == first + 5


def test_a_reader_sees_nothing_at_or_above_the_end_it_may_see(tmp_path: Path) -> None:
    log = create(tmp_path, config(segment_bytes=500))
    for number in range(12):
        append(log, b"%d" % number * 50)
    for end in range(13):
        for start in range(end):
            seen: list[int] = []
            offset = Offset(start)
            while offset < end:
                view = log.read(offset, bytes_max=EVERYTHING, end=Offset(end), one_batch=True).read()
                seen += [header.base_offset for _, header in batches(view)]
                offset = Offset(seen[-1] + 1)
            assert seen == list(range(start, end))
        assert log.read(Offset(end), bytes_max=EVERYTHING, end=Offset(end), one_batch=True) is EMPTY


def test_offsets_outside_the_log_are_refused(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, b"a", b"b")
    append(log, b"c")
    log.advance_log_start(Offset(2))
    for offset in (-1, 0, 1, 4):
        with pytest.raises(LogError) as refused:
            log.read(Offset(offset), bytes_max=1, end=log.end_offset, one_batch=True)
        assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.read(Offset(3), bytes_max=1, end=log.end_offset, one_batch=True) is EMPTY


def test_a_refused_batch_leaves_everything_as_it_was(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, b"a")
    damaged = batch([b"b"])
    damaged[-1] ^= 1
    size = log.size_bytes()
    with pytest.raises(ApiError) as refused:
        log.append_as_leader(damaged, leader_epoch=1, now_ms=NOW_MS)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    with pytest.raises(LogError):
        log.append_as_leader(batch([b"b"], attributes=TRANSACTIONAL, producer=(1, 0, 0)), leader_epoch=1, now_ms=NOW_MS)
    assert (log.end_offset, log.size_bytes(), log.epochs.latest, log.producers.producers) == (1, size, 0, {})


def test_a_failed_write_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = create(tmp_path)
    append(log, b"a")
    size = log.size_bytes()
    write = os.pwrite

    def torn(fd: int, data: memoryview, position: int) -> int:
        if position > size:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data[:10], position)

    with monkeypatch.context() as disk:
        disk.setattr(os, "pwrite", torn)
        with pytest.raises(LogError) as refused:
            log.append_as_leader(batch([b"b"], producer=(7, 0, 0)), leader_epoch=1, now_ms=NOW_MS)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert os.path.getsize(log.active.path) == size
    assert (log.end_offset, log.producers.producers) == (1, {})
    assert log.epoch_end(0) == (0, 1), "an epoch that has no record yet begins at the end"
    append(log, b"c")
    assert contents(log) == [(0, b"a"), (1, b"c")]


def test_a_segment_that_finds_no_room_refuses_the_batch_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = create(tmp_path, config(segment_bytes=300))
    append(log, b"a" * 200)

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "open", full)
        with pytest.raises(LogError) as refused:
            log.append_as_leader(batch([b"b" * 200]), leader_epoch=1, now_ms=NOW_MS)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    append(log, b"c" * 200)
    assert contents(log) == [(0, b"a" * 200), (1, b"c" * 200)]


def test_a_write_that_takes_only_a_part_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = create(tmp_path)
    append(log, b"a")
    write = os.pwrite
    with monkeypatch.context() as disk:
        disk.setattr(os, "pwrite", lambda fd, data, position: write(fd, data[:10], position))
        append(log, b"b" * 50)
    assert contents(log) == [(0, b"a"), (1, b"b" * 50)]


def test_segments_roll_by_size_with_a_snapshot_for_each(tmp_path: Path) -> None:
    log = create(tmp_path, config(segment_bytes=300))
    for _ in range(5):
        append(log, b"x" * 60)
    assert bases(log) == [0, 2, 4]
    assert {name for name in files(log) if name.endswith("snapshot")} == {f"{base:020d}.snapshot" for base in (2, 4)}


def test_segments_roll_by_the_first_batchs_time(tmp_path: Path) -> None:
    log = create(tmp_path, config(segment_ms=1000))
    for late_ms in (0, 1000, 1001, 1500, 2002):
        log.append_as_leader(batch([b"x"], timestamps=[NOW_MS + late_ms]), leader_epoch=0, now_ms=NOW_MS)
    assert bases(log) == [0, 2, 4]


def test_jitter_rolls_earlier_and_never_later(tmp_path: Path) -> None:
    log = create(tmp_path, config(segment_ms=1000, segment_jitter_ms=500))
    assert 500 < log.active.age_ms_max <= 1000


def test_segments_roll_when_an_index_is_full(tmp_path: Path) -> None:
    log = create(tmp_path, config(index_interval_bytes=0, segment_index_bytes=36))
    for number in range(8):
        log.append_as_leader(batch([b"x"], timestamps=[NOW_MS + number]), leader_epoch=0, now_ms=NOW_MS)
    assert bases(log) == [0, 3, 6]


def test_a_follower_rolls_where_relative_offsets_end(tmp_path: Path) -> None:
    log = create(tmp_path)
    far = 2**31
    log.append_as_follower(batch([b"a"], leader_epoch=0), now_ms=NOW_MS)
    log.append_as_follower(batch([b"b"], base_offset=far, leader_epoch=0), now_ms=NOW_MS)
    assert bases(log) == [0, far]
    assert contents(log) == [(0, b"a"), (far, b"b")]


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    log = create(tmp_path, config(segment_bytes=300))
    with pytest.raises(LogError) as refused:
        append(log, b"x" * 300)
    assert refused.value.code is ErrorCode.RECORD_LIST_TOO_LARGE


def test_a_follower_takes_offsets_and_epochs_as_they_come(tmp_path: Path) -> None:
    log = create(tmp_path)
    sent = bytearray()
    for base, epoch in ((0, 1), (5, 1), (6, 4)):
        sent += batch([b"%d" % base], base_offset=base, leader_epoch=epoch, producer=(9, 0, base))
    whole = len(sent)
    sent += batch([b"cut"], base_offset=7, leader_epoch=4)[:40]
    appended = log.append_as_follower(memoryview(sent), now_ms=NOW_MS)
    assert (appended.first_offset, appended.last_offset, log.end_offset, log.size_bytes()) == (0, 6, 7, whole)
    assert log.epochs.entries == [EpochStart(1, 0), EpochStart(4, 6)]
    assert log.producers.producers[9].last_sequence == 6
    with pytest.raises(LogError):
        log.append_as_follower(batch([b"again"], base_offset=6, leader_epoch=4), now_ms=NOW_MS)


def test_an_epoch_ends_where_the_next_leader_wrote(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, b"a", leader_epoch=1)
    append(log, b"b", leader_epoch=3)
    assert [log.epoch_end(epoch) for epoch in (1, 2, 3, 4)] == [
        EpochEnd(1, 1),
        EpochEnd(1, 1),
        EpochEnd(3, 2),
        EpochEnd(-1, -1),
    ]
    log.close()
    assert reopen(tmp_path).epochs.entries == [EpochStart(1, 0), EpochStart(3, 1)]


def test_truncating_drops_the_batch_that_holds_the_offset(tmp_path: Path) -> None:
    log = create(tmp_path, config(segment_bytes=300))
    append(log, b"a" * 60)
    append(log, b"b" * 60, b"c")
    append(log, b"d" * 60, leader_epoch=1)
    assert not log.truncate_to(Offset(9), now_ms=NOW_MS)
    assert log.truncate_to(Offset(2), now_ms=NOW_MS)
    assert (log.end_offset, contents(log), log.epochs.latest) == (1, [(0, b"a" * 60)], 0)
    append(log, b"e")
    assert contents(log)[-1] == (1, b"e")


def test_truncating_before_the_log_begins_it_anew(tmp_path: Path) -> None:
    log = create(tmp_path, config(segment_bytes=150))
    for _ in range(4):
        append(log, b"x" * 60)
    log.advance_log_start(Offset(2), now_ms=NOW_MS)
    log.truncate_to(Offset(1), now_ms=NOW_MS)
    assert (log.log_start_offset, log.end_offset, bases(log), contents(log)) == (1, 1, [1], [])


def test_deleting_records_drops_whole_segments_and_no_more(tmp_path: Path) -> None:
    log = create(tmp_path, config(segment_bytes=300))
    for number in range(6):
        append(log, b"%d" % number * 60)
    log.advance_log_start(Offset(3), now_ms=NOW_MS)
    assert (log.log_start_offset, bases(log)) == (3, [2, 4])
    assert [offset for offset, _ in contents(log)] == [3, 4, 5]
    log.advance_log_start(Offset(6), now_ms=NOW_MS)
    assert (bases(log), contents(log)) == ([4], [])


def test_files_of_dropped_segments_wait_to_be_deleted_and_readers_go_on(tmp_path: Path) -> None:
    log = create(tmp_path, config(segment_bytes=300, file_delete_delay_ms=1000))
    for number in range(4):
        append(log, b"%d" % number * 60)
    reader = log.read(Offset(0), bytes_max=EVERYTHING, end=log.end_offset, one_batch=True)
    before = reader.read()
    log.advance_log_start(Offset(2), now_ms=NOW_MS)
    assert {name for name in files(log) if "00000000000000000000" in name} == {
        f"00000000000000000000.{kind}.deleted" for kind in ("log", "index", "timeindex")
    }
    assert log.removals.due(NOW_MS + 999) == []
    due = log.removals.due(NOW_MS + 1000)
    for path in due:
        os.unlink(path)
    assert len(due) == 3
    assert reader.read() == before


def test_retention_deletes_old_segments_and_lastly_the_active_one(tmp_path: Path) -> None:
    log = create(tmp_path, config(segment_bytes=300, retention_ms=DAY_MS))
    for number in range(5):
        append(log, b"%d" % number * 60)
    assert log.delete_old_segments(NOW_MS + DAY_MS, log.end_offset) == 0
    assert log.delete_old_segments(NOW_MS + DAY_MS + 1, Offset(3)) == 1
    assert (log.log_start_offset, bases(log)) == (2, [2, 4])
    assert log.delete_old_segments(NOW_MS + DAY_MS + 1, log.end_offset) == 2
    assert (log.log_start_offset, log.end_offset, bases(log)) == (5, 5, [5])
    append(log, b"later")
    assert contents(log) == [(5, b"later")]


def test_retention_by_size_keeps_what_fits(tmp_path: Path) -> None:
    log = create(tmp_path, config(segment_bytes=300, retention_bytes=300))
    for number in range(6):
        append(log, b"%d" % number * 60)
    assert log.delete_old_segments(NOW_MS, log.end_offset) == 1
    assert bases(log) == [2, 4]


def test_flushing_moves_the_recovery_point(tmp_path: Path) -> None:
    log = create(tmp_path, config(segment_bytes=300, flush_messages=3))
    for _ in range(3):
        assert not log.must_flush
        append(log, b"x" * 60)
    assert (log.must_flush, log.unflushed_records) == (True, 3)
    rolled = log.flush_point(rolled_only=True)
    names = [path.removeprefix(log.path).lstrip("/").split(".")[-1] for path in rolled.paths]
    assert names == ["log", "index", "timeindex", "txnindex", "snapshot", "", "leader-epoch-checkpoint"]
    rolled.sync()
    log.flushed(rolled)
    assert log.recovery_point == 2
    log.flush()
    assert (log.recovery_point, log.must_flush) == (3, False)


def test_a_flush_that_ends_after_a_truncation_does_not_vouch_for_what_came_since(tmp_path: Path) -> None:
    """The records that it was about are gone, and those at their offsets may have been written after the fsync."""
    log = create(tmp_path, config(flush_messages=1))
    append(log, b"a")
    log.flush()
    append(log, b"b")
    point = log.flush_point()
    log.truncate_to(Offset(1), now_ms=NOW_MS)
    append(log, b"c")
    point.sync()
    log.flushed(point)
    assert (log.recovery_point, log.must_flush) == (1, True)
    log.flush()
    assert log.recovery_point == 2


def test_an_aborted_transaction_is_found_by_its_readers(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, b"plain")
    for sequence in range(2):
        sent = batch([b"doubtful"], attributes=TRANSACTIONAL, producer=(7, 0, sequence))
        log.append_as_leader(sent, leader_epoch=0, now_ms=NOW_MS, verified=sequence == 0)
    assert log.producers.first_unstable_offset() == 1
    end_transaction(log, commit=False)
    log.producers.replicated_to(log.end_offset)
    assert log.producers.first_unstable_offset() is None
    assert log.aborted_transactions(Offset(0), log.end_offset) == [(1, 7)]
    assert log.aborted_transactions(Offset(0), Offset(1)) == []
    assert log.aborted_transactions(Offset(4), log.end_offset) == []
    recovered = reopen(tmp_path, clean=False)
    assert recovered.aborted_transactions(Offset(0), recovered.end_offset) == [(1, 7)]
    recovered.truncate_to(Offset(3), now_ms=NOW_MS)
    assert recovered.aborted_transactions(Offset(0), recovered.end_offset) == []
    assert recovered.producers.first_unstable_offset() == 1


def test_a_committed_transaction_leaves_no_trace(tmp_path: Path) -> None:
    log = create(tmp_path)
    sent = batch([b"sure"], attributes=TRANSACTIONAL, producer=(7, 0, 0))
    log.append_as_leader(sent, leader_epoch=0, now_ms=NOW_MS, verified=True)
    end_transaction(log, commit=True)
    assert log.aborted_transactions(Offset(0), log.end_offset) == []
    assert not (tmp_path / str(PARTITION) / "00000000000000000000.txnindex").exists()


def test_duplicates_survive_a_restart(tmp_path: Path) -> None:
    log = create(tmp_path)
    log.append_as_leader(batch([b"a", b"b"], producer=(7, 2, 10)), leader_epoch=0, now_ms=NOW_MS)
    log.close()
    again = reopen(tmp_path)
    appended = again.append_as_leader(batch([b"a", b"b"], producer=(7, 2, 10)), leader_epoch=0, now_ms=NOW_MS)
    assert appended == Appended(Offset(0), Offset(1), NOW_MS, Offset(0), True)


def test_a_changed_configuration_counts_from_the_next_append(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, b"x" * 60)
    log.update_config(config(segment_bytes=200, max_message_bytes=150))
    append(log, b"x" * 60)
    assert bases(log) == [0, 1]
    with pytest.raises(LogError) as refused:
        append(log, b"x" * 90)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_an_idle_log_holds_no_descriptor(tmp_path: Path) -> None:
    log = create(tmp_path)
    append(log, b"a")
    log.rest()
    assert log.active.file is None
    assert contents(log) == [(0, b"a")]
    append(log, b"b")
    assert contents(log) == [(0, b"a"), (1, b"b")]
