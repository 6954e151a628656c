"""A piece of a segment file, named by position instead of read: the data path hands these around, not bytes."""

from __future__ import annotations

import errno
import os


class FileRange:
    """`size` bytes of `fd` from `position` on. Holding it holds the file open, even when retention deletes it."""

    __slots__ = ("fd", "owner", "position", "size")

    def __init__(self, fd: int, position: int, size: int, owner: object) -> None:
        self.fd = fd
        self.position = position
        self.size = size
        self.owner = owner

    def __len__(self) -> int:
        return self.size

    def read(self) -> bytes:
        found = os.pread(self.fd, self.size, self.position)
        if len(found) != self.size:
            raise OSError(errno.EIO, "a segment is shorter than it was")
        return found

    def after(self, count: int) -> FileRange:
        """What is left when the first `count` bytes are gone."""
        return FileRange(self.fd, self.position + count, self.size - count, self.owner)


EMPTY = FileRange(-1, 0, 0, None)
