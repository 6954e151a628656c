"""Taking offsets away: from the end, when a leader disagrees, and from the start, when records are deleted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.core.ids import Offset
from moldau.log.checkpoints import write_leader_epochs
from moldau.log.files import SNAPSHOT, TRANSACTION_INDEX, offset_name, remove_if_there
from moldau.log.indexes.transaction_index import truncate_aborted
from moldau.log.recovery import rebuild_producers
from moldau.log.removal import deleted_folder_name
from moldau.log.retention import expired
from moldau.log.segment import Segment

if TYPE_CHECKING:
    from moldau.log.partition_log import PartitionLog


def truncate_to(log: PartitionLog, offset: Offset, now_ms: int) -> bool:
    """Drop the batch that holds an offset and everything after it; False when the log ends before it anyway."""
    if offset >= log.end_offset:
        _save_epochs(log, log.epochs.truncate_end(log.end_offset))
        return False
    if offset < log.segments[0].base_offset:
        restart_at(log, offset, now_ms)
        return True
    gone = [segment for segment in log.segments if segment.base_offset > offset]
    _drop(log, gone, now_ms)
    log.active = log.segments[-1]
    log.end_offset = Offset(log.active.truncate_to(offset))
    truncate_aborted(log.active.prefix + TRANSACTION_INDEX, offset)
    log.log_start_offset = min(log.log_start_offset, log.end_offset)
    log.recovery_point = min(log.recovery_point, log.end_offset)
    log.hints.clear()
    _save_epochs(log, log.epochs.truncate_end(log.end_offset))
    _reload_producers(log)
    return True


def restart_at(log: PartitionLog, offset: Offset, now_ms: int) -> None:
    """Empty the log and let it go on at an offset: what the leader has of it begins there."""
    _drop(log, log.segments[:], now_ms)
    log.segments = [log.new_segment(offset, now_ms)]
    log.active = log.segments[0]
    log.log_start_offset = log.end_offset = log.recovery_point = offset
    log.hints.clear()
    log.epochs.clear()
    _save_epochs(log, True)
    for snapshot in log.snapshot_offsets:
        remove_if_there(f"{log.path}/{offset_name(snapshot)}{SNAPSHOT}")
    log.snapshot_offsets.clear()
    log.producers.clear(offset)


def advance_log_start(log: PartitionLog, offset: Offset, now_ms: int) -> None:
    """Begin at a later offset; segments that lie before it go."""
    if offset <= log.log_start_offset:
        return
    log.log_start_offset = offset
    _save_epochs(log, log.epochs.truncate_start(offset))
    log.producers.replicated_to(offset)
    log.producers.end_offset = max(log.producers.end_offset, offset)
    keep = next((slot for slot in range(len(log.segments) - 1, 0, -1) if log.segments[slot].base_offset <= offset), 0)
    _drop(log, log.segments[:keep], now_ms)


def delete_old_segments(log: PartitionLog, now_ms: int, high_watermark: Offset) -> int:
    """Apply retention; gives the number of segments that went."""
    count = expired(
        log.segments,
        config=log.config,
        now_ms=now_ms,
        log_start_offset=log.log_start_offset,
        high_watermark=high_watermark,
        end_offset=log.end_offset,
    ).total
    if count == 0:
        return 0
    if count == len(log.segments):
        log.roll(now_ms)
    start = Offset(log.segments[count].base_offset)
    if start > log.log_start_offset:
        advance_log_start(log, start, now_ms)
    else:
        _drop(log, log.segments[:count], now_ms)
    return count


def _drop(log: PartitionLog, gone: Sequence[Segment], now_ms: int) -> None:
    if not gone:
        return
    bases = {segment.base_offset for segment in gone}
    log.removals.add_segments(log.path, gone, now_ms + log.config.file_delete_delay_ms)
    log.segments = [segment for segment in log.segments if segment.base_offset not in bases]
    log.snapshot_offsets = [offset for offset in log.snapshot_offsets if offset not in bases]


def _save_epochs(log: PartitionLog, changed: bool) -> None:
    if changed:
        write_leader_epochs(log.path, log.epochs)
        log.epochs_dirty = True


def _reload_producers(log: PartitionLog) -> None:
    """The producers as they were at the new end, from the last snapshot before it and the batches after that."""
    rebuild_producers(
        log.path,
        log.segments,
        log.producers,
        log.snapshot_offsets,
        log_start_offset=log.log_start_offset,
        end_offset=log.end_offset,
    )
    log.take_snapshot()


def delete(log: PartitionLog) -> str:
    """Let go of every file and give the folder a name that says it is to be deleted."""
    for segment in log.segments:
        segment.forget()
    doomed = f"{os.path.dirname(log.path)}/{deleted_folder_name(log.partition)}"
    os.rename(log.path, doomed)
    return doomed
