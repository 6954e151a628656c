"""Sparse index from timestamp to offset: twelve bytes an entry, both columns ever growing.

An entry says: up to this offset (relative to the base) no batch has a later timestamp than this. As with the offset
index, the active segment's entries live in arrays and reach the file when the segment rolls or rests.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from moldau.log.files import last_at_or_below, last_entry, read_whole, size_of, write_at

WRITE_ALL = -1  # in place of the number of entries that the file has
ENTRY = struct.Struct(">qi")
NO_TIMESTAMP = -1


class Timed(NamedTuple):
    timestamp: int
    offset: int


class TimeIndex:
    __slots__ = ("base_offset", "offsets", "path", "timestamps", "written")

    def __init__(self, path: str, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self.timestamps: array[int] | None = None
        self.offsets: array[int] | None = None
        self.written = 0

    def __len__(self) -> int:
        return len(self.timestamps) if self.timestamps is not None else max(0, size_of(self.path)) // ENTRY.size

    def load(self) -> None:
        """Bring the entries into memory, for a segment that is appended to."""
        raw = read_whole(self.path) or b""
        entries = list(ENTRY.iter_unpack(raw[: len(raw) - len(raw) % ENTRY.size]))
        self.timestamps = array("q", [entry[0] for entry in entries])
        self.offsets = array("i", [entry[1] for entry in entries])
        self.written = len(entries)

    def unload(self) -> None:
        self.save()
        self.timestamps = self.offsets = None

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry unless its timestamp is nothing new."""
        assert self.timestamps is not None
        assert self.offsets is not None
        if timestamp > (self.timestamps[-1] if self.timestamps else NO_TIMESTAMP):
            self.timestamps.append(timestamp)
            self.offsets.append(offset - self.base_offset)

    def lookup(self, timestamp: int) -> Timed:
        """The last entry that is not later than the timestamp; every record before it is earlier or equal."""
        if self.timestamps is None or self.offsets is None:
            found = last_at_or_below(self.path, ENTRY, 0, timestamp)
            return Timed(found[0], found[1] + self.base_offset) if found else Timed(NO_TIMESTAMP, self.base_offset)
        slot = bisect_right(self.timestamps, timestamp)
        if slot == 0:
            return Timed(NO_TIMESTAMP, self.base_offset)
        return Timed(self.timestamps[slot - 1], self.offsets[slot - 1] + self.base_offset)

    def last(self) -> Timed:
        if self.timestamps is None or self.offsets is None:
            found = last_entry(self.path, ENTRY)
            return Timed(found[0], found[1] + self.base_offset) if found else Timed(NO_TIMESTAMP, self.base_offset)
        if not self.timestamps:
            return Timed(NO_TIMESTAMP, self.base_offset)
        return Timed(self.timestamps[-1], self.offsets[-1] + self.base_offset)

    def truncate_to(self, offset: int) -> None:
        """Forget every entry of this offset or a later one."""
        if self.offsets is None:
            self.load()
        assert self.timestamps is not None
        assert self.offsets is not None
        keep = bisect_left(self.offsets, offset - self.base_offset)
        del self.timestamps[keep:]
        del self.offsets[keep:]
        self.written = WRITE_ALL
        self.save()

    def reset(self) -> None:
        """Begin anew in memory; the file is replaced when it is saved the next time."""
        self.timestamps, self.offsets = array("q"), array("i")
        self.written = WRITE_ALL

    def save(self) -> None:
        """Write what the file lacks, or all of it when it holds what it should not."""
        if self.timestamps is None or self.offsets is None or self.written == len(self.offsets):
            return
        first = max(0, self.written)
        fresh = zip(self.timestamps[first:], self.offsets[first:], strict=True)
        write_at(self.path, b"".join([ENTRY.pack(*entry) for entry in fresh]), first * ENTRY.size)
        self.written = len(self.offsets)

    def fault(self) -> str | None:
        """What is wrong with the file, seen from its size and its last entry."""
        size = size_of(self.path)
        if size < 0:
            return "does not exist"
        if size % ENTRY.size:
            return f"has {size} bytes, which is no multiple of {ENTRY.size}"
        found = last_entry(self.path, ENTRY)
        if found and (found[0] < 0 or found[1] < 0):
            return f"ends with timestamp {found[0]} at offset {found[1]}"
        return None
