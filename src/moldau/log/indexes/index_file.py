"""A sparse index as a file: entries of two numbers, of which the first ever grows.

The entries of an active segment live in two arrays. Those not yet in the file are written when the segment rolls or
rests, because after a crash the unflushed part is indexed anew. Other segments are searched in their file.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import NamedTuple, TypeAlias

from moldau.log.files import entries_from, last_entry, read_whole, size_of, write_at

WRITE_ALL = -1  # in place of the number of entries that the file has
WINDOW_ENTRIES = 2_048  # 16 KiB of an index lead a reader through eight megabytes and more of its log
IndexEntry: TypeAlias = "tuple[int, int]"


class Window(NamedTuple):
    """Neighbouring entries of a file, kept for a reader that goes on from there."""

    first: array[int]
    second: array[int]
    is_end: bool


def columns(raw: bytes, kinds: str) -> tuple[array[int], array[int]]:
    """The two columns of big-endian entries, an int or a long and an int, without a Python object for each entry."""
    words = array("I", raw)
    if sys.byteorder == "little":
        words.byteswap()
    if kinds == "ii":
        return array("i", words[0::2].tobytes()), array("i", words[1::2].tobytes())
    high, low = words[0::3], words[1::3]
    longs = array("I", bytes(8 * len(high)))
    little = sys.byteorder == "little"
    longs[0::2], longs[1::2] = (low, high) if little else (high, low)
    return array("q", longs.tobytes()), array("i", words[2::3].tobytes())


class IndexFile:
    """One index's entries; `kinds` are the array types of the two columns. Its owner appends to both columns."""

    __slots__ = ("_entry", "_kinds", "_window", "_written", "first", "path", "second")

    def __init__(self, path: str, entry: Struct, kinds: str) -> None:
        self.path = path
        self.first: array[int] | None = None
        self.second: array[int] | None = None
        self._entry = entry
        self._kinds = kinds
        self._window: Window | None = None
        self._written = 0

    def __len__(self) -> int:
        return len(self.first) if self.first is not None else max(0, size_of(self.path)) // self._entry.size

    def load(self, *, is_empty: bool = False) -> None:
        """Bring the entries into memory, for a segment that is appended to; that of an empty one has none."""
        if self.first is not None:
            return
        raw = b"" if is_empty else read_whole(self.path) or b""
        self.first, self.second = columns(raw[: len(raw) - len(raw) % self._entry.size], self._kinds)
        self._written = len(self.first)
        self._window = None

    def unload(self) -> None:
        """Save, and only then let go: after a failure the entries are still in memory."""
        self.save()
        self.forget()

    def forget(self) -> None:
        """Let go of the entries in memory, whatever the file has."""
        self.first = self.second = self._window = None

    def last_stored(self) -> IndexEntry | None:
        """The last entry of the file, whatever is in memory."""
        found = last_entry(self.path, self._entry)
        return None if found is None else (found[0], found[1])

    def at_or_below(self, first: int, *, remember: bool = False) -> IndexEntry | None:
        """The last entry whose first number is not larger. With `remember`, those after it are found without a search:
        for a segment that is kept open, which calls `forget` when it no longer is.
        """
        if self.first is None or self.second is None:
            return self._search(first, remember)
        slot = bisect_right(self.first, first)
        return (self.first[slot - 1], self.second[slot - 1]) if slot else None

    def _search(self, first: int, remember: bool) -> IndexEntry | None:
        window = self._window
        if window is not None:
            slot = bisect_right(window.first, first)
            if 0 < slot < len(window.first) or (slot and window.is_end):
                return window.first[slot - 1], window.second[slot - 1]
        raw, is_end = entries_from(self.path, self._entry, first, most=WINDOW_ENTRIES if remember else 1)
        if not raw:
            return None
        found = Window(*columns(raw, self._kinds), is_end)
        if remember:
            self._window = found
        return found.first[0], found.second[0]

    def last(self) -> IndexEntry | None:
        if self.first is None or self.second is None:
            return self.last_stored()
        return (self.first[-1], self.second[-1]) if self.first else None

    def keep_below(self, number: int, *, is_second: bool = False) -> None:
        """Forget every entry whose first number, or second, is this one or a larger one."""
        if self.first is None:
            self.load()
        assert self.first is not None
        assert self.second is not None
        keep = bisect_left(self.second if is_second else self.first, number)
        del self.first[keep:]
        del self.second[keep:]
        self._written = WRITE_ALL
        self.save()

    def reset(self) -> None:
        """Begin anew in memory; the file is replaced when it is saved the next time."""
        self.first, self.second = array(self._kinds[0]), array(self._kinds[1])
        self._window = None
        self._written = WRITE_ALL

    def save(self) -> None:
        """Write what the file lacks, or all of it when it holds what it should not."""
        if self.first is None or self.second is None or self._written == len(self.first):
            return
        start = max(0, self._written)
        fresh = zip(self.first[start:], self.second[start:], strict=True)
        write_at(self.path, b"".join([self._entry.pack(*entry) for entry in fresh]), start * self._entry.size)
        self._written = len(self.first)

    def size_fault(self) -> str | None:
        """What is wrong with the file, seen from its size."""
        size = size_of(self.path)
        if size < 0:
            return "does not exist"
        return f"has {size} bytes, which is no multiple of {self._entry.size}" if size % self._entry.size else None
