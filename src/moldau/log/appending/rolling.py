"""Beginning a new segment, with a snapshot of the producers as of its start so that it can be recovered alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.core.ids import Offset
from moldau.log.producers.producer_snapshot import write_snapshot
from moldau.log.segment import Segment

if TYPE_CHECKING:
    from moldau.log.partition_log import PartitionLog


def roll_at(log: PartitionLog, first_offset: Offset, now_ms: int) -> Segment:
    """Begin a new segment. When that fails the old one stays in use, sealed, and with a snapshot more than it needs."""
    old = log.active
    if old.base_offset == first_offset and old.size == 0:
        return old
    old.seal()
    log.producers.end_offset = first_offset
    take_snapshot(log)
    segment = log.active = new_segment(log, first_offset, now_ms)
    log.segments.append(segment)
    log.hints.clear()
    old.forget()
    return segment


def new_segment(log: PartitionLog, base_offset: Offset, now_ms: int) -> Segment:
    config = log.config
    segment = Segment.create(log.path, base_offset, index_interval_bytes=config.index_interval_bytes, now_ms=now_ms)
    segment.limit_age(config.segment_ms_max, config.segment_jitter_ms)
    segment.keeper = log.active.keeper
    return segment


def take_snapshot(log: PartitionLog) -> None:
    """Write the producers to a file of the offset up to which they are known, unless there is one already."""
    offset = log.producers.end_offset
    if offset > (log.snapshot_offsets[-1] if log.snapshot_offsets else 0):
        write_snapshot(log.path, log.producers)
        log.snapshot_offsets.append(offset)
