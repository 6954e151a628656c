"""Finding records by time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from moldau.core.limits import DECOMPRESSED_BATCH_BYTES_MAX
from moldau.log.segment import Segment
from moldau.wire.batch import OVERHEAD_BYTES, Record, read_header, records


class TimestampedOffset(NamedTuple):
    timestamp_ms: int
    offset: int
    leader_epoch: int


def first_at_or_after(segments: Sequence[Segment], timestamp_ms: int, *, start_offset: int) -> TimestampedOffset | None:
    """The first record that is not earlier than a time, in offset order."""
    for segment in segments:
        if segment.largest_timestamp() < timestamp_ms:
            continue
        # A segment may hold nothing although its time says otherwise: what it had may lie before the log's start.
        if (found := _in_segment(segment, timestamp_ms, start_offset)) is not None:
            return found
    return None


def _in_segment(segment: Segment, timestamp_ms: int, start_offset: int) -> TimestampedOffset | None:
    entry = segment.time_index.lookup(timestamp_ms)
    file = segment.open()
    position = segment.offset_index.lookup(max(entry.offset, start_offset)).position
    for at, (base_offset, body_bytes, delta, newest) in segment.hops(file, position):
        if newest < timestamp_ms or base_offset + delta < start_offset:
            continue
        batch = memoryview(os.pread(file.fd, body_bytes + OVERHEAD_BYTES, at))
        for record in _records(batch):
            if record.timestamp >= timestamp_ms and record.offset >= start_offset:
                return TimestampedOffset(record.timestamp, record.offset, read_header(batch).leader_epoch)
    return None


def latest(segments: Sequence[Segment]) -> TimestampedOffset | None:
    """The first record that has the largest timestamp of all."""
    newest = max(segments, key=lambda segment: segment.load_max_timestamp().timestamp)
    timestamp, offset = newest.load_max_timestamp()
    if timestamp < 0:
        return None
    file = newest.open()
    for at, (_, body_bytes, _, batch_newest) in newest.hops(file, newest.offset_index.lookup(offset).position):
        if batch_newest != timestamp:
            continue
        batch = memoryview(os.pread(file.fd, body_bytes + OVERHEAD_BYTES, at))
        epoch = read_header(batch).leader_epoch
        for record in _records(batch):
            if record.timestamp == timestamp:
                return TimestampedOffset(timestamp, record.offset, epoch)
    return None


def _records(batch: memoryview) -> Iterator[Record]:
    return records(batch, decompressed_bytes_max=DECOMPRESSED_BATCH_BYTES_MAX)
