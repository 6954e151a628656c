"""Sparse index from offset to file position: eight bytes an entry, the offset relative to the segment's base.

An entry names a batch by its last offset and gives the position where the batch begins, as Kafka does.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import NamedTuple

from moldau.log.indexes.index_file import IndexFile

ENTRY = struct.Struct(">ii")
RELATIVE_OFFSET_MAX = 0x7FFFFFFF


class Indexed(NamedTuple):
    """Where a search may begin; `last_offset` is that of the batch found there, -1 at the start of the file."""

    last_offset: int
    position: int


START = Indexed(-1, 0)
NOWHERE = Indexed(-1, -1)


class OffsetIndex:
    __slots__ = ("base_offset", "entries")

    def __init__(self, path: str, base_offset: int) -> None:
        self.base_offset = base_offset
        self.entries = IndexFile(path, ENTRY, "ii")

    def append(self, offset: int, position: int) -> None:
        entries = self.entries
        assert entries.first is not None
        assert entries.second is not None
        entries.first.append(offset - self.base_offset)
        entries.second.append(position)

    def lookup(self, offset: int, *, remember: bool = False) -> Indexed:
        """The last indexed batch that ends at or before this offset; see `IndexFile.at_or_below`."""
        found = self.entries.at_or_below(min(offset - self.base_offset, RELATIVE_OFFSET_MAX), remember=remember)
        return START if found is None else Indexed(found[0] + self.base_offset, found[1])

    def following(self, offset: int) -> Indexed:
        """The first indexed batch that ends at or after this offset; position -1 when that would take a search."""
        offsets, positions = self.entries.first, self.entries.second
        if offsets is None or positions is None:
            return NOWHERE
        slot = bisect_left(offsets, offset - self.base_offset)
        if slot == len(offsets):
            return NOWHERE
        return Indexed(offsets[slot] + self.base_offset, positions[slot])

    def last(self) -> Indexed:
        found = self.entries.last()
        return START if found is None else Indexed(found[0] + self.base_offset, found[1])

    def truncate_to(self, offset: int) -> None:
        """Forget every entry of this offset or a later one."""
        self.entries.keep_below(offset - self.base_offset)

    def fault(self, log_bytes: int) -> str | None:
        """What is wrong with the file, seen from its size and its last entry."""
        if fault := self.entries.size_fault():
            return fault
        found = self.entries.last_stored()
        if found and (found[0] < 0 or not 0 <= found[1] < max(log_bytes, 1)):
            return f"ends with offset {found[0]} at byte {found[1]} of a log of {log_bytes} bytes"
        return None
