"""Finding a batch in a segment's file, by hopping from header to header."""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

from moldau.core.errors import ErrorCode
from moldau.log.errors import LogError
from moldau.wire.batch import OVERHEAD_BYTES

BODY_BYTES_MIN = 49  # the rest of a header, without any record
WINDOW_BYTES = 8192  # index entries are 4 KB apart, so one read usually holds every header between two of them

HOP = struct.Struct(">qi11xi")  # base offset, length, last offset delta
_unpack_hop = HOP.unpack_from


class BatchPosition(NamedTuple):
    """Where a batch is, and which offsets it spans."""

    position: int
    size: int
    base_offset: int
    last_offset: int


class StaleIndex(Exception):
    """The index points to a batch that is not there."""


def first_reaching(fd: int, offset: int, *, position: int, end: int, indexed_offset: int = -1) -> BatchPosition | None:
    """Hop from header to header to the first batch that ends at or after an offset."""
    window = b""
    at = 0
    while position < end:
        if at + HOP.size > len(window):
            window = os.pread(fd, WINDOW_BYTES, position)
            at = 0
            if len(window) < HOP.size:
                return None
        base_offset, body_bytes, delta = _unpack_hop(window, at)
        if indexed_offset >= 0 and base_offset + delta != indexed_offset:
            raise StaleIndex
        indexed_offset = -1
        if body_bytes < BODY_BYTES_MIN:
            raise LogError(ErrorCode.CORRUPT_MESSAGE, f"Found record size {body_bytes} at byte {position}")
        if base_offset + delta >= offset:
            return BatchPosition(position, body_bytes + OVERHEAD_BYTES, base_offset, base_offset + delta)
        position += body_bytes + OVERHEAD_BYTES
        at += body_bytes + OVERHEAD_BYTES
    return None
