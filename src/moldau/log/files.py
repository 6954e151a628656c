"""Open files that outlive their names, whole files written in one step, and names as Kafka spells them."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import struct
from bisect import bisect_right

from moldau.log.failure import SyncFailed

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"

SEGMENT_SUFFIXES = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)

FILE_MODE = 0o644


class OpenFile:
    """A descriptor that closes when the last reference goes: a fetch in flight keeps a deleted segment readable."""

    __slots__ = ("fd",)

    def __init__(self, path: str, flags: int) -> None:
        self.fd = -1
        self.fd = os.open(path, flags | os.O_CLOEXEC, FILE_MODE)

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


def offset_name(offset: int) -> str:
    return f"{offset:020d}"


def write_at(path: str, data: bytes, position: int) -> None:
    """Write at a position and forget whatever came after it."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        if data:
            write_all(fd, data, position)
        os.ftruncate(fd, position + len(data))
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes | memoryview, position: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(fd, view, position)
        if count == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        view = view[count:]
        position += count


def read_whole(path: str) -> bytes | None:
    """The file's bytes, or None when there is no such file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        size = os.fstat(fd).st_size
        return os.pread(fd, size, 0) if size else b""
    finally:
        os.close(fd)


def replace(path: str, data: bytes, *, sync: bool) -> None:
    """Put a whole file in place in one step; with `sync` it also survives a power cut."""
    temporary = path + ".tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
    try:
        write_all(fd, data, 0)
        if sync:
            sync_file(fd, path)
    except BaseException:
        with contextlib.suppress(OSError):  # half a file would only take room that is short already
            os.unlink(temporary)
        raise
    finally:
        os.close(fd)
    os.replace(temporary, path)
    if sync:
        sync_path(os.path.dirname(path))


def sync_file(fd: int, path: str) -> None:
    """fsync, whose failure is told apart from all others: after it nobody knows what the disk has."""
    try:
        os.fsync(fd)
    except OSError as failure:
        raise SyncFailed(failure.errno, failure.strerror, path) from failure


def sync_path(path: str) -> None:
    """fsync a file or a folder by name; one that is gone needs none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        sync_file(fd, path)
    finally:
        os.close(fd)


def remove_if_there(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def size_of(path: str) -> int:
    """Bytes in the file, or -1 when there is none."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return -1


def entries_from(path: str, layout: struct.Struct, target: int, *, most: int) -> tuple[bytes, bool]:
    """Search a file of sorted entries without loading it: from the last one whose first number is not above the target.

    Gives the bytes of so many entries, and whether the file ends with them; none when all entries are above it.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b"", True
    try:
        count = os.fstat(fd).st_size // layout.size
        if count == 0:
            return b"", True
        with mmap.mmap(fd, count * layout.size, access=mmap.ACCESS_READ) as entries:
            size, unpack = layout.size, layout.unpack_from
            slot = bisect_right(range(count), target, key=lambda number: unpack(entries, number * size)[0])
            end = min(count, slot - 1 + most)
            return (entries[(slot - 1) * size : end * size], end == count) if slot else (b"", False)
    finally:
        os.close(fd)


def last_entry(path: str, layout: struct.Struct) -> tuple[int, ...] | None:
    """The last whole entry of a file of fixed-size entries."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        count = os.fstat(fd).st_size // layout.size
        return layout.unpack(os.pread(fd, layout.size, (count - 1) * layout.size)) if count else None
    finally:
        os.close(fd)
