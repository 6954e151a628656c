"""Taking offsets away: from the end, when a leader disagrees, and from the start, when records are deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.core.ids import Offset
from moldau.log.appending.rolling import new_segment, take_snapshot
from moldau.log.checkpoints import write_leader_epochs
from moldau.log.failure import Verdict, judge
from moldau.log.files import SNAPSHOT, TRANSACTION_INDEX, offset_name, remove_if_there
from moldau.log.indexes.transaction_index import truncate_aborted
from moldau.log.leader_epochs import LeaderEpochs
from moldau.log.maintenance.recovery import rebuild_producers
from moldau.log.maintenance.retention import expired
from moldau.log.segment import Segment

if TYPE_CHECKING:
    from moldau.log.partition_log import PartitionLog


def truncate_to(log: PartitionLog, offset: Offset, now_ms: int) -> bool:
    """Drop the batch that holds an offset and everything after it; False when the log ends before it anyway.

    A failure half way can't be undone: the log is offline then, and the files are read again at the next start.
    """
    if offset >= log.end_offset:
        _truncate_epochs(log, log.end_offset)
        return False
    if offset < log.segments[0].base_offset:
        restart_at(log, offset, now_ms)
        return True
    _go_back(log, offset)
    _drop(log, [segment for segment in reversed(log.segments) if segment.base_offset > offset], now_ms)
    log.active = log.segments[-1]
    log.end_offset = Offset(log.active.truncate_to(offset))
    truncate_aborted(log.active.prefix + TRANSACTION_INDEX, offset)
    if log.end_offset < offset:  # which was within a batch
        _go_back(log, log.end_offset)
    log.hints.clear()
    _truncate_epochs(log, log.end_offset)
    _reload_producers(log)
    return True


def _go_back(log: PartitionLog, offset: Offset) -> None:
    """Neither starts nor is synced or clean beyond an offset, also according to checkpoints, before anything goes.

    After a crash a log that ends before its start would be taken for one that lost its files, and emptied. What grows
    again below where it was clean would keep old values, and lose the tombstones that hide them.
    """
    log.truncations += 1
    log.log_start_offset = min(log.log_start_offset, offset)
    log.recovery_point = min(log.recovery_point, offset)
    if log.clean_to is not None:
        log.clean_to = min(log.clean_to, offset)
    if log.on_gone_back is not None:
        log.on_gone_back(log)


def restart_at(log: PartitionLog, offset: Offset, now_ms: int) -> None:
    """Empty the log and let it go on at an offset: what the leader has of it begins there."""
    _go_back(log, offset)
    _drop(log, log.segments[::-1], now_ms)
    log.segments = [new_segment(log, offset, now_ms)]
    log.active = log.segments[0]
    log.log_start_offset = log.end_offset = log.recovery_point = offset
    log.hints.clear()
    log.save_epochs(LeaderEpochs())
    for snapshot in log.snapshot_offsets:
        remove_if_there(f"{log.path}/{offset_name(snapshot)}{SNAPSHOT}")
    log.snapshot_offsets.clear()
    log.producers.clear(offset)


def advance_log_start(log: PartitionLog, offset: Offset, now_ms: int) -> None:
    """Begin at a later offset; segments that lie before it go.

    Where it begins is in memory until the next checkpoint, so a segment that could not be dropped is tried again.
    """
    if offset <= log.log_start_offset:
        return
    log.log_start_offset = offset
    _forget_first_epochs(log, offset)
    log.producers.replicated_to(offset)
    log.producers.end_offset = max(log.producers.end_offset, offset)
    keep = next((slot for slot in range(len(log.segments) - 1, 0, -1) if log.segments[slot].base_offset <= offset), 0)
    _drop(log, log.segments[:keep], now_ms)


def _forget_first_epochs(log: PartitionLog, offset: Offset) -> None:
    """On a full disk the file may keep what it has, for every start forgets the same: deleting has to go on."""
    if not log.epochs.truncate_start(offset):
        return
    log.epochs_dirty = True
    try:
        write_leader_epochs(log.path, log.epochs)
    except OSError as failure:
        if judge(failure) is Verdict.OFFLINE:
            raise


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
    """Take segments away one by one from an end of the log, so that what is left has no gap whatever fails."""
    for segment in gone:
        failure = log.removals.add_segment(log.path, segment, now_ms + log.config.file_delete_delay_ms)
        log.segments.remove(segment)
        if segment.base_offset in log.snapshot_offsets:
            log.snapshot_offsets.remove(segment.base_offset)
        if failure is not None:
            raise failure


def _truncate_epochs(log: PartitionLog, end_offset: Offset) -> None:
    changed = log.epochs.copy()
    if changed.truncate_end(end_offset):
        log.save_epochs(changed)


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
    take_snapshot(log)
