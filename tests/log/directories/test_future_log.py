"""A log's copy in another log directory: it is filled piece by piece, and takes the log's place or leaves it alone."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from moldau.core.ids import Offset
from moldau.log.directories import future_log
from moldau.log.directories.future_log import MARK, create_future, forget_source, next_piece
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.directories.meta_properties import UnusableDirectory
from moldau.log.errors import LogError
from moldau.log.partition_log import PartitionLog
from tests.log.samples import NOW_MS, PARTITION, append, batch, config, contents, crash, log_in

TRANSACTIONAL = 0x10


def copied(source: PartitionLog, target: Path) -> PartitionLog:
    return filled_up(source, create_future(source, str(target), now_ms=NOW_MS))


def filled_up(source: PartitionLog, future: PartitionLog) -> PartitionLog:
    while future.end_offset < source.end_offset:
        piece = next_piece(source, future, bytes_max=200, now_ms=NOW_MS)
        if piece:
            future.append_as_follower(memoryview(piece.read()), now_ms=NOW_MS)
    return future


def filled(tmp_path: Path) -> tuple[LogDirectories, PartitionLog, Path]:
    """Some segments, two epochs of which the second has no record yet, and a transaction that is open."""
    directories = LogDirectories.open([tmp_path / "a", tmp_path / "b"], node_id=1)
    log = log_in(directories, used=config(segment_bytes=300))
    for number in range(10):
        append(log, b"%d" % number, b"%d again" % number, leader_epoch=3)
    open_one = batch([b"undecided"], producer=(7, 0, 0), attributes=TRANSACTIONAL)
    log.append_as_leader(open_one, leader_epoch=3, now_ms=NOW_MS, verified=True)
    log.assign_epoch(5, log.end_offset)
    return directories, log, next(path for path in directories.paths if path != log.directory.parent)


def test_a_copy_takes_the_logs_place(tmp_path: Path) -> None:
    directories, log, target = filled(tmp_path)
    log.advance_log_start(Offset(3))  # inside a batch
    expected = contents(log)
    future = copied(log, target)
    directories.replace(log, future)
    assert log.is_deleted
    assert directories.logs() == [future]
    assert directories.partitions_in(target) == [PARTITION]
    assert contents(future) == expected
    assert (future.log_start_offset, future.epochs.latest) == (3, 5)
    assert future.producers.first_unstable_offset() == 20
    append(future, b"more", leader_epoch=5)
    future.roll(NOW_MS)
    append(future, b"even more", leader_epoch=5)
    forget_source(log, future)
    crash(directories)
    again = log_in(LogDirectories.open(directories.paths, node_id=1), used=log.config)
    assert again.path == f"{target}/{PARTITION}"
    assert contents(again)[-2:] == [(21, b"more"), (22, b"even more")]
    assert again.producers.first_unstable_offset() == 20
    assert not os.path.exists(f"{again.path}/{MARK}")


@pytest.mark.parametrize("step", ["replace", "sync_path"])
def test_a_copy_that_the_disk_refuses_leaves_the_log_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    directories, log, target = filled(tmp_path)
    expected, future = contents(log), copied(log, target)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(future_log, step, refuse)
    with pytest.raises(LogError):
        directories.replace(log, future)
    monkeypatch.undo()
    directories.discard(future)
    assert not log.is_deleted
    append(log, b"more", leader_epoch=5)
    assert contents(log) == [*expected, (21, b"more")]
    crash(directories)
    again = log_in(LogDirectories.open(directories.paths, node_id=1), used=log.config)
    assert again.path == log.path
    assert contents(again) == [*expected, (21, b"more")]


def test_a_crash_before_the_log_lost_its_name_leaves_a_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directories, log, target = filled(tmp_path)
    expected, future = contents(log), copied(log, target)
    monkeypatch.setattr(directories, "delete", lambda _: None)
    directories.replace(log, future)
    crash(directories)
    again = LogDirectories.open(directories.paths, node_id=1)
    assert contents(log_in(again, used=log.config)) == expected
    assert not log.directory.exists()
    assert again.partitions_in(target) == [PARTITION]


def test_without_a_mark_nobody_knows_which_one_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directories, log, target = filled(tmp_path)
    monkeypatch.setattr(directories, "delete", lambda _: None)
    directories.replace(log, copied(log, target))
    (target / str(PARTITION) / MARK).unlink()
    crash(directories)
    with pytest.raises(UnusableDirectory, match="move one of the two folders away"):
        LogDirectories.open(directories.paths, node_id=1)


def test_a_log_that_has_no_records_moves_too(tmp_path: Path) -> None:
    directories = LogDirectories.open([tmp_path / "a", tmp_path / "b"], node_id=1)
    log = log_in(directories)
    target = next(path for path in directories.paths if path != log.directory.parent)
    log.restart_at(Offset(40), now_ms=NOW_MS)
    future = copied(log, target)
    directories.replace(log, future)
    assert (future.log_start_offset, future.end_offset) == (40, 40)
    append(future, b"first")
    assert contents(future) == [(40, b"first")]


def test_what_is_deleted_while_it_is_copied_is_deleted_in_the_copy(tmp_path: Path) -> None:
    directories, log, target = filled(tmp_path)
    future = create_future(log, str(target), now_ms=NOW_MS)
    piece = next_piece(log, future, bytes_max=200, now_ms=NOW_MS)
    future.append_as_follower(memoryview(piece.read()), now_ms=NOW_MS)
    log.advance_log_start(Offset(17), now_ms=NOW_MS)
    directories.replace(log, filled_up(log, future))
    assert contents(future) == [(17, b"8 again"), (18, b"9"), (19, b"9 again"), (20, b"undecided")]
    future.advance_log_start(future.end_offset, now_ms=NOW_MS)
    log, future = future, create_future(future, str(log.directory.parent), now_ms=NOW_MS)
    append(log, b"last", leader_epoch=5)
    log.advance_log_start(log.end_offset, now_ms=NOW_MS)
    directories.replace(log, filled_up(log, future))
    assert (future.log_start_offset, future.end_offset) == (22, 22)
