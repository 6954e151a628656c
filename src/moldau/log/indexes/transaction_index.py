"""Aborted transactions of a segment: thirty-four bytes each in a file that exists only once there is one."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from typing import NamedTuple

from moldau.log.failure import NotUndone
from moldau.log.files import read_whole, size_of, write_at
from moldau.log.producers.producer_state import CompletedTransaction

VERSION = 0
ENTRY = struct.Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int

    @classmethod
    def of(cls, completed: CompletedTransaction, last_stable_offset: int) -> AbortedTransaction:
        return cls(completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset)


def append_aborted(path: str, aborted: AbortedTransaction) -> int:
    """Add an entry, or nothing; gives the size of the file before, to which `cut` takes it back."""
    size = max(0, size_of(path))
    size -= size % ENTRY.size
    try:
        write_at(path, ENTRY.pack(VERSION, *aborted), size)
    except OSError as failure:
        cut(path, size, failure)
        raise
    return size


def cut(path: str, size: int, failure: OSError) -> None:
    """Take an entry back because of a failure; the entry of a transaction without its marker would outlast it."""
    try:
        if size_of(path) > size:
            os.truncate(path, size)
    except OSError:
        raise NotUndone.after(failure) from failure


def read_aborted(path: str) -> list[AbortedTransaction]:
    data = read_whole(path) or b""
    return [
        AbortedTransaction(*entry)
        for version, *entry in ENTRY.iter_unpack(data[: len(data) - len(data) % ENTRY.size])
        if version == VERSION
    ]


def aborted_between(paths: Iterable[str], start: int, end: int) -> list[AbortedTransaction]:
    """The aborted transactions that touch [start, end), searched from the segment of `start` on.

    An abort is noted in the segment of its marker, so the search ends only where the last stable offset passed `end`.
    """
    found = []
    for aborted in (each for path in paths for each in read_aborted(path)):
        if aborted.last_offset >= start and aborted.first_offset < end:
            found.append(aborted)
        if aborted.last_stable_offset >= end:
            break
    return found


def truncate_aborted(path: str, offset: int) -> None:
    """Forget transactions that ended at this offset or later."""
    if size_of(path) <= 0:
        return
    kept = sum(1 for aborted in read_aborted(path) if aborted.last_offset < offset)
    os.truncate(path, kept * ENTRY.size)


def is_damaged(path: str, base_offset: int) -> bool:
    size = size_of(path)
    return size > 0 and (size % ENTRY.size != 0 or any(each.last_offset < base_offset for each in read_aborted(path)))
