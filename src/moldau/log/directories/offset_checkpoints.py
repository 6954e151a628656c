"""What is written down of logs from time to time: recovery points, starts, high watermarks, how far each is clean."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable
from threading import Lock
from typing import NamedTuple, TypeAlias

from moldau.core.ids import TopicPartition
from moldau.log.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    CorruptCheckpoint,
    read_offsets,
    write_offsets,
)
from moldau.log.files import read_whole
from moldau.log.partition_log import PartitionLog

HighWatermark: TypeAlias = Callable[[PartitionLog], int]


class Checkpoints(NamedTuple):
    """Offsets for each file in each log directory, noted log by log; writing them may be left to a thread.

    They are by name, so that nothing may be written of a log that is deleted by then: its name may be another's.
    """

    files: list[tuple[str, str, dict[PartitionLog, int]]]
    lock: Lock
    """Held by who writes the files."""
    high_watermark: HighWatermark = lambda _: 0

    @classmethod
    def of_directories(cls, paths: Iterable[str], lock: Lock) -> Checkpoints:
        return cls([(path, name, {}) for path in paths for name in (RECOVERY_POINTS, LOG_START_OFFSETS)], lock)

    @classmethod
    def of_high_watermarks(cls, paths: Iterable[str], lock: Lock, high_watermark: HighWatermark) -> Checkpoints:
        return cls([(path, HIGH_WATERMARKS, {}) for path in paths], lock, high_watermark)

    @classmethod
    def of_clean_logs(cls, path: str, logs: Iterable[PartitionLog], lock: Lock) -> Checkpoints:
        return cls([(path, CLEANER_OFFSETS, {log: log.clean_to for log in logs if log.clean_to is not None})], lock)

    def note(self, log: PartitionLog) -> None:
        home = os.path.dirname(log.path)
        for path, name, offsets in self.files:
            if path != home:
                continue
            if name is RECOVERY_POINTS:
                offsets[log] = log.recovery_point
            elif name is LOG_START_OFFSETS and log.log_start_offset > log.segments[0].base_offset:
                offsets[log] = log.log_start_offset
            elif name is HIGH_WATERMARKS:
                offsets[log] = self.high_watermark(log)

    def write(self, only: str | None = None) -> None:
        for directory, name, noted in self.files:
            if only is None or directory == only:
                with self.lock:
                    offsets = {
                        log.partition: min(offset, _offset_now(log, name, offset, self.high_watermark))
                        for log, offset in noted.items()
                        if not log.is_deleted
                    }
                    write_offsets(directory, name, offsets)

    def write_all(self) -> dict[str, OSError]:
        """Write those of every directory; gives the failures, for whoever owns the directories to judge."""
        failures: dict[str, OSError] = {}
        for directory in dict.fromkeys(each[0] for each in self.files):
            try:
                self.write(directory)
            except OSError as failure:
                failures[directory] = failure
        return failures


def forget_offsets(directory: str, partitions: Collection[TopicPartition], lock: Lock) -> None:
    """Take partitions out of the files: what they say is of others that had these names."""
    for name in (RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS):
        with lock:
            data = read_whole(f"{directory}/{name}") or b""
            if any(f"\n{topic} {index} ".encode() in data for topic, index in partitions):
                with contextlib.suppress(CorruptCheckpoint):  # which nobody believes
                    offsets = read_offsets(directory, name)
                    write_offsets(directory, name, {each: offsets[each] for each in offsets if each not in partitions})


def lower_offsets(directory: str, log: PartitionLog, lock: Lock, high_watermark: HighWatermark) -> None:
    """What a log has truncated is not to be found in the files either."""
    for name in (RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS):
        with lock, contextlib.suppress(CorruptCheckpoint):
            noted = _noted(directory, name, log.partition)
            if noted > (now := _offset_now(log, name, noted, high_watermark)):
                write_offsets(directory, name, {**read_offsets(directory, name), log.partition: now})


def _noted(directory: str, name: str, partition: TopicPartition) -> int:
    """One entry, without the parsing of all: after an election thousands of logs may be truncated."""
    data = read_whole(f"{directory}/{name}") or b""
    _, _, rest = data.partition(f"\n{partition.topic} {partition.partition} ".encode())
    offset = rest.partition(b"\n")[0]
    return int(offset) if offset.isdigit() else 0


def _offset_now(log: PartitionLog, name: str, noted: int, high_watermark: HighWatermark) -> int:
    if name is RECOVERY_POINTS:
        return log.recovery_point
    if name is LOG_START_OFFSETS:
        return log.log_start_offset
    if name is HIGH_WATERMARKS:
        return high_watermark(log)
    return noted if log.clean_to is None else log.clean_to
