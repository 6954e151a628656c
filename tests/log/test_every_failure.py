"""A log whose disk fails at every single call, one after the other: each step happens whole or not at all.

The files are real; only the calls into the operating system are counted, and one of them, or all from one on, fail.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset
from moldau.log.errors import LogError
from moldau.log.partition_log import PartitionLog
from moldau.log.producers.end_transaction_marker import encode_marker
from moldau.log.producers.producer_state import Origin
from moldau.wire.batch import CONTROL, TRANSACTIONAL, Record, build_batch
from tests.log.samples import NOW_MS, PARTITION, batch, config, contents, create, reopen

CALLS = ("open", "pwrite", "ftruncate", "truncate", "replace", "rename", "unlink", "fsync")
CONFIG = config(segment_bytes=420, index_interval_bytes=1, file_delete_delay_ms=0)
IDEMPOTENT, ABORTED, COMMITTED = 7, 8, 9
CALLS_MAX = 400


class Disk:
    """Counts the calls that may fail and fails the nth of them, or that and all after it until it is healed."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count, self.fails_at, self.lasting, self.error = 0, 0, False, 0
        self.half = False
        self._patch = patch

    def plug(self) -> None:
        for name in CALLS:
            self._patch.setattr(os, name, self._wrapped(getattr(os, name), name))

    def fail(self, at: int, error: int, *, lasting: bool) -> None:
        self.count, self.fails_at, self.error, self.lasting = 0, at, error, lasting

    def heal(self) -> None:
        self.fails_at = 0

    def _wrapped(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            self.count += 1
            hit = self.fails_at and (self.count == self.fails_at or (self.lasting and self.count > self.fails_at))
            if not hit:  # fsync is left out, for no power fails here
                return None if name == "fsync" else call(*arguments, **named)
            if self.error == 0:  # a short write, which is no failure
                return (
                    call(arguments[0], memoryview(arguments[1])[:7], arguments[2])
                    if name == "pwrite"
                    else call(*arguments, **named)
                )
            if name == "pwrite" and self.half:
                call(arguments[0], memoryview(arguments[1])[: len(arguments[1]) // 2], arguments[2])
            raise OSError(self.error, os.strerror(self.error))

        return wrapped


@dataclass
class World:
    folder: Path
    disk: Disk
    log: PartitionLog
    acknowledged: list[bytes] = field(default_factory=list)
    checkpointed_start: int = 0
    recoveries: int = 0

    def step(self, work: Callable[[], object], value: bytes | None = None) -> None:
        """Do it, again if the disk refused it; a log that went offline is opened anew, as a restart does."""
        for _ in range(3):
            try:
                work()
            except LogError as refused:
                if refused.code is not ErrorCode.KAFKA_STORAGE_ERROR:
                    raise
                self.disk.heal()
                if self.log.offline is not None:
                    self.recover()
                else:
                    assert self.values() == self.acknowledged, "a refused step has left something"
                continue
            break
        else:
            pytest.fail("refused three times on a sound disk")
        if value is not None:
            self.acknowledged.append(value)

    def recover(self) -> None:
        """What was refused may be there after all; whoever hears of a failure knows that it is not known."""
        self.recoveries += 1
        point, self.checkpointed_start = self.log.recovery_point, self.log.log_start_offset
        self.log = reopen(
            self.folder, CONFIG, clean=False, recovery_point=point, log_start_offset=self.checkpointed_start
        )
        found = self.values()
        assert found[: len(self.acknowledged)] == self.acknowledged
        assert len(found) <= len(self.acknowledged) + 1
        self.acknowledged = found

    def flush(self) -> None:
        self.log.flush()

    def rest(self) -> None:
        self.log.rest()

    def values(self) -> list[bytes]:
        return [value for _, value in contents(self.log, start=0) if b"record" in value]

    def append(self, value: bytes, *, producer: tuple[int, int, int] = (-1, -1, -1), attributes: int = 0) -> None:
        def work() -> None:
            appended = self.log.append_as_leader(
                batch([value], producer=producer, attributes=attributes), leader_epoch=self.log.epochs.latest + 1,
                now_ms=NOW_MS, verified=True,
            )  # fmt: skip
            if appended.duplicate:
                assert self.acknowledged.count(value) == 1, "known, but not there"
                self.acknowledged.remove(value)

        self.step(work, value)

    def end(self, producer_id: int, *, commit: bool) -> None:
        key, value = encode_marker(is_commit=commit, coordinator_epoch=0)

        def work() -> None:
            marker = build_batch(
                [Record(0, NOW_MS, key, value)], producer_id=producer_id, producer_epoch=0,
                attributes=TRANSACTIONAL | CONTROL,
            )  # fmt: skip
            self.log.append_as_leader(
                memoryview(marker), leader_epoch=self.log.epochs.latest, now_ms=NOW_MS, origin=Origin.COORDINATOR
            )

        self.step(work)


def script(world: World) -> Iterator[None]:
    """Everything a log does to its files; a step at a time, so that each can be looked at."""
    for number in range(4):
        world.append(b"plain record %d" % number)
        yield
    for sequence in range(3):
        world.append(b"idempotent record %d" % sequence, producer=(IDEMPOTENT, 0, sequence))
        yield
    for sequence in range(2):
        world.append(b"aborted record %d" % sequence, producer=(ABORTED, 0, sequence), attributes=TRANSACTIONAL)
        world.append(b"committed record %d" % sequence, producer=(COMMITTED, 0, sequence), attributes=TRANSACTIONAL)
        yield
    world.end(ABORTED, commit=False)
    yield
    world.end(COMMITTED, commit=True)
    yield
    world.step(world.flush)
    yield
    world.step(lambda: world.log.roll(NOW_MS))
    world.append(b"record after the roll")
    yield
    world.step(world.rest)
    world.append(b"record after the rest")
    yield


def aborted(log: PartitionLog) -> list[tuple[int, int]]:
    return sorted(log.aborted_transactions(Offset(0), log.end_offset))


def check(world: World) -> None:
    log = world.log
    values = world.values()
    assert values == world.acknowledged
    once = [value for value in values if value.startswith((b"idempotent", b"aborted", b"committed"))]
    assert len(once) == len(set(once)) == 7
    first = next(offset for offset, value in contents(log, start=0) if value == b"aborted record 0")
    assert aborted(log) == [(first, ABORTED)]
    assert not log.producers.ongoing
    assert [segment.base_offset for segment in log.segments] == sorted({each.base_offset for each in log.segments})


def check_copies(world: World, scratch: Path) -> None:
    """After kill -9, and after a clean stop, the files say the same."""
    expected, ends = world.values(), (world.log.log_start_offset, world.log.end_offset)
    shutil.copytree(world.folder, scratch)
    killed = reopen(scratch, CONFIG, clean=False, recovery_point=world.log.recovery_point)
    assert (killed.log_start_offset, killed.end_offset) == ends
    assert aborted(killed) == aborted(world.log)
    assert [value for _, value in contents(killed)] == [value for _, value in contents(world.log)]
    shutil.rmtree(scratch)
    world.log.close()
    world.log = reopen(world.folder, CONFIG, clean=True)
    assert (world.values(), (world.log.log_start_offset, world.log.end_offset)) == (expected, ends)
    check(world)


def run(folder: Path, disk: Disk, at: int, error: int, *, lasting: bool) -> int:
    """One life of a log with one fault; gives the number of calls that it took."""
    disk.heal()
    world = World(folder, disk, create(folder, CONFIG))
    disk.fail(at, error, lasting=lasting)
    for _ in script(world):
        pass
    calls = disk.count
    disk.heal()
    check(world)
    check_copies(world, folder.with_name(folder.name + "-copy"))
    return calls


@pytest.mark.parametrize(
    ("error", "lasting"),
    [(errno.ENOSPC, False), (errno.ENOSPC, True), (errno.EIO, False), (errno.EMFILE, False), (0, False)],
    ids=["full at one moment", "full", "EIO", "EMFILE", "short write"],
)
def test_a_step_is_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, lasting: bool
) -> None:
    disk = Disk(monkeypatch)
    disk.half = True
    with monkeypatch.context():
        disk.plug()
        calls = run(tmp_path / "sound", disk, 0, 0, lasting=False)
        assert 50 < calls < CALLS_MAX
        for at in range(1, calls + 1):
            folder = tmp_path / str(at)
            run(folder, disk, at, error, lasting=lasting)
            shutil.rmtree(folder)


def test_retention_goes_on_where_it_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old segments go on a full disk, too: that is what makes room."""
    disk = Disk(monkeypatch)
    disk.plug()
    at, calls = 0, 1
    while at < calls:
        at += 1
        folder = tmp_path / str(at)
        disk.heal()
        log = create(folder, CONFIG)
        for number in range(12):
            log.append_as_leader(batch([b"record %d" % number]), leader_epoch=number // 4, now_ms=NOW_MS)
        disk.fail(at, errno.ENOSPC, lasting=False)
        for _ in range(2):
            try:
                log.advance_log_start(Offset(9), now_ms=NOW_MS)
                log.delete_old_segments(NOW_MS, log.end_offset)
            except LogError:
                assert log.offline is None
        calls = max(calls, disk.count)
        disk.heal()
        log.delete_old_segments(NOW_MS, log.end_offset)
        assert log.segments[0].base_offset <= 9 < log.segments[1].base_offset
        assert [offset for offset, _ in contents(log)] == [9, 10, 11]
        assert (folder / str(PARTITION)).is_dir()
        killed = reopen(folder, CONFIG, clean=False, log_start_offset=9)
        assert [offset for offset, _ in contents(killed)] == [9, 10, 11]
        assert killed.epochs.entries == log.epochs.entries
    assert at > 5


def test_no_batch_gets_ahead_of_the_first_one_that_was_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer has five on their way: the second must not be taken for the beginning of one that is not known yet."""
    disk = Disk(monkeypatch)
    disk.plug()
    log = create(tmp_path)

    def send(sequence: int, epoch: int = 0) -> ErrorCode:
        try:
            log.append_as_leader(
                batch([b"record %d" % sequence], producer=(IDEMPOTENT, epoch, sequence)), leader_epoch=0, now_ms=NOW_MS
            )
        except LogError as refused:
            return refused.code
        return ErrorCode.NONE

    disk.fail(1, errno.ENOSPC, lasting=True)
    assert send(1) is ErrorCode.KAFKA_STORAGE_ERROR
    assert send(0) is ErrorCode.KAFKA_STORAGE_ERROR
    disk.heal()
    assert send(1) is send(2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [send(sequence) for sequence in range(3)] == [ErrorCode.NONE] * 3
    assert contents(log) == [(0, b"record 0"), (1, b"record 1"), (2, b"record 2")]
    assert not log.producers.refused
