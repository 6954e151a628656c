"""Sparse index from offset to file position: eight bytes an entry, the offset relative to the segment's base.

An entry names a batch by its last offset and gives the position where the batch begins, as Kafka does. The active
segment's entries live in two arrays; those not yet in the file are written when the segment rolls or rests,
because after a crash the unflushed part is indexed anew. Other segments are searched in their file.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from moldau.log.files import last_at_or_below, last_entry, read_whole, size_of, write_at

WRITE_ALL = -1  # in place of the number of entries that the file has
ENTRY = struct.Struct(">ii")
RELATIVE_OFFSET_MAX = 0x7FFFFFFF


class Indexed(NamedTuple):
    """Where a search may begin; `last_offset` is that of the batch found there, -1 at the start of the file."""

    last_offset: int
    position: int


NOWHERE = Indexed(-1, -1)


class OffsetIndex:
    __slots__ = ("base_offset", "offsets", "path", "positions", "written")

    def __init__(self, path: str, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self.offsets: array[int] | None = None
        self.positions: array[int] | None = None
        self.written = 0

    def __len__(self) -> int:
        return len(self.offsets) if self.offsets is not None else max(0, size_of(self.path)) // ENTRY.size

    def load(self) -> None:
        """Bring the entries into memory, for a segment that is appended to."""
        raw = read_whole(self.path) or b""
        both = array("i", raw[: len(raw) - len(raw) % ENTRY.size])
        if sys.byteorder == "little":
            both.byteswap()
        self.offsets, self.positions = both[::2], both[1::2]
        self.written = len(self.offsets)

    def unload(self) -> None:
        self.save()
        self.offsets = self.positions = None

    def append(self, offset: int, position: int) -> None:
        assert self.offsets is not None
        assert self.positions is not None
        self.offsets.append(offset - self.base_offset)
        self.positions.append(position)

    def lookup(self, offset: int) -> Indexed:
        """The last indexed batch that ends at or before this offset."""
        relative = min(offset - self.base_offset, RELATIVE_OFFSET_MAX)
        if self.offsets is None or self.positions is None:
            found = last_at_or_below(self.path, ENTRY, 0, relative)
            return Indexed(found[0] + self.base_offset, found[1]) if found else Indexed(-1, 0)
        slot = bisect_right(self.offsets, relative)
        if slot == 0:
            return Indexed(-1, 0)
        return Indexed(self.offsets[slot - 1] + self.base_offset, self.positions[slot - 1])

    def following(self, offset: int) -> Indexed:
        """The first indexed batch that ends at or after this offset; position -1 when that would take a search."""
        if self.offsets is None or self.positions is None:
            return NOWHERE
        slot = bisect_left(self.offsets, offset - self.base_offset)
        if slot == len(self.offsets):
            return NOWHERE
        return Indexed(self.offsets[slot] + self.base_offset, self.positions[slot])

    def last(self) -> Indexed:
        if self.offsets is None or self.positions is None:
            found = last_entry(self.path, ENTRY)
            return Indexed(found[0] + self.base_offset, found[1]) if found else Indexed(-1, 0)
        if not self.offsets:
            return Indexed(-1, 0)
        return Indexed(self.offsets[-1] + self.base_offset, self.positions[-1])

    def truncate_to(self, offset: int) -> None:
        """Forget every entry of this offset or a later one."""
        if self.offsets is None:
            self.load()
        assert self.offsets is not None
        assert self.positions is not None
        keep = bisect_left(self.offsets, offset - self.base_offset)
        del self.offsets[keep:]
        del self.positions[keep:]
        self.written = WRITE_ALL
        self.save()

    def reset(self) -> None:
        """Begin anew in memory; the file is replaced when it is saved the next time."""
        self.offsets, self.positions = array("i"), array("i")
        self.written = WRITE_ALL

    def save(self) -> None:
        """Write what the file lacks, or all of it when it holds what it should not."""
        if self.offsets is None or self.positions is None or self.written == len(self.offsets):
            return
        first = max(0, self.written)
        fresh = zip(self.offsets[first:], self.positions[first:], strict=True)
        write_at(self.path, b"".join([ENTRY.pack(*entry) for entry in fresh]), first * ENTRY.size)
        self.written = len(self.offsets)

    def fault(self, log_bytes: int) -> str | None:
        """What is wrong with the file, seen from its size and its last entry."""
        size = size_of(self.path)
        if size < 0:
            return "does not exist"
        if size % ENTRY.size:
            return f"has {size} bytes, which is no multiple of {ENTRY.size}"
        found = last_entry(self.path, ENTRY)
        if found and (found[0] < 0 or not 0 <= found[1] < max(log_bytes, 1)):
            return f"ends with offset {found[0]} at byte {found[1]} of a log of {log_bytes} bytes"
        return None
