"""A second log of a replica, in another log directory, until it has all of the first and takes its place.

It is filled as a follower's log is, in a folder that no start takes for a partition's. At its end the folder gets the
partition's name before the other one loses it. A crash in between leaves two, and a mark in the one that counts.
"""

from __future__ import annotations

import os

from moldau.core.ids import Offset
from moldau.log.appending.rolling import roll_at
from moldau.log.file_range import FileRange
from moldau.log.files import remove_if_there, replace, sync_path
from moldau.log.maintenance.removal import future_folder_name
from moldau.log.partition_log import PartitionLog
from moldau.wire.batch import batches

MARK = "moldau-moved"
FIRST_BYTES = 1  # the first batch comes whole, however small this is


def create_future(source: PartitionLog, directory: str, *, now_ms: int) -> PartitionLog:
    """An empty log that begins where another one does. What is deleted inside its first batch is copied, too."""
    start = source.log_start_offset
    if start < source.end_offset:
        first = source.read(start, bytes_max=FIRST_BYTES, end=source.end_offset, one_batch=True).read()
        start = min([start, *(Offset(header.base_offset) for _, header in batches(memoryview(first)))])
    forget_mark(source.path)
    future = PartitionLog.create(
        f"{directory}/{future_folder_name(source.partition)}",
        partition=source.partition,
        topic_id=source.topic_id,
        config=source.config,
        now_ms=now_ms,
    )
    if start > 0:
        future.restart_at(start, now_ms=now_ms)
    return future


def next_piece(source: PartitionLog, future: PartitionLog, *, bytes_max: int, now_ms: int) -> FileRange:
    """What the copy lacks next. Where nothing is left up to the end, the copy ends at the same offset."""
    end = source.end_offset
    offset = max(future.end_offset, source.log_start_offset)
    piece = source.read(offset, bytes_max=bytes_max, end=end, one_batch=True)
    if not piece:
        with future.storage():
            roll_at(future, end, now_ms)
        future.end_offset = future.producers.end_offset = end
    return piece


def promote(future: PartitionLog, source: PartitionLog) -> None:
    """Give the copy its partition's name, and what the other log has in memory. LogError if the disk refuses it."""
    future.update_config(source.config)
    future.save_epochs(source.epochs.copy())
    future.advance_log_start(source.log_start_offset)
    future.flush()
    directory = os.path.dirname(future.path)
    with future.storage():
        replace(f"{future.path}/{MARK}", b"", sync=True)
        named = f"{directory}/{future.partition}"
        os.rename(future.path, named)
        try:
            sync_path(directory)
        except OSError:
            os.rename(named, future.path)
            raise
    _rename(future, named)
    # They know what is in no file: who is being verified, and which transactions wait for their marker's commit.
    future.producers = source.producers


def _rename(log: PartitionLog, path: str) -> None:
    before, log.path = log.path, path
    for segment in log.segments:
        segment.move_to(path)
    log.removals.pending = [(due_ms, path + each.removeprefix(before)) for due_ms, each in log.removals.pending]


def is_moved_here(path: str) -> bool:
    return os.path.lexists(f"{path}/{MARK}")


def forget_mark(path: str) -> None:
    if is_moved_here(path):
        remove_if_there(f"{path}/{MARK}")
        sync_path(path)


def forget_source(source: PartitionLog, future: PartitionLog) -> None:
    """The mark is needed until the other folder has surely lost its name; may run in any thread."""
    sync_path(os.path.dirname(source.path))
    if not os.path.lexists(source.path):
        forget_mark(future.path)
