"""Sparse index from timestamp to offset: twelve bytes an entry, both columns ever growing.

An entry says: up to this offset (relative to the base) no batch has a later timestamp than this.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from moldau.log.indexes.index_file import IndexFile
from moldau.wire.batch import NO_TIMESTAMP

ENTRY = struct.Struct(">qi")


class Timed(NamedTuple):
    timestamp: int
    offset: int


class TimeIndex:
    __slots__ = ("base_offset", "entries")

    def __init__(self, path: str, base_offset: int) -> None:
        self.base_offset = base_offset
        self.entries = IndexFile(path, ENTRY, "qi")

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry unless its timestamp is nothing new."""
        entries = self.entries
        assert entries.first is not None
        assert entries.second is not None
        if timestamp > (entries.first[-1] if entries.first else NO_TIMESTAMP):
            entries.first.append(timestamp)
            entries.second.append(offset - self.base_offset)

    def append_last(self, timestamp: int, offset: int) -> None:
        """The same, also to the file of a segment that rests since its last append."""
        if self.entries.first is not None:
            self.append(timestamp, offset)
        elif timestamp > self.last().timestamp:
            self.entries.load()
            self.append(timestamp, offset)
            self.entries.unload()

    def lookup(self, timestamp: int) -> Timed:
        """The last entry that is not later than the timestamp; every record before it is earlier or equal."""
        return self._timed(self.entries.at_or_below(timestamp))

    def last(self) -> Timed:
        return self._timed(self.entries.last())

    def _timed(self, found: tuple[int, int] | None) -> Timed:
        if found is None:
            return Timed(NO_TIMESTAMP, self.base_offset)
        return Timed(found[0], found[1] + self.base_offset)

    def truncate_to(self, offset: int) -> None:
        """Forget every entry of this offset or a later one."""
        self.entries.keep_below(offset - self.base_offset, is_second=True)

    def fault(self) -> str | None:
        """What is wrong with the file, seen from its size and its last entry."""
        if fault := self.entries.size_fault():
            return fault
        found = self.entries.last_stored()
        if found and (found[0] < 0 or found[1] < 0):
            return f"ends with timestamp {found[0]} at offset {found[1]}"
        return None
