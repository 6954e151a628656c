"""A piece of a segment file, named by position instead of read: the data path hands these around, not bytes."""

from __future__ import annotations

import errno
import os

NOWHERE = 1 << 62  # beyond the end of any file


class Extent:
    """How often a segment was truncated, and the lowest position that it was cut at."""

    __slots__ = ("cut_at", "truncations")

    def __init__(self) -> None:
        self.truncations = 0
        self.cut_at = NOWHERE

    def cut(self, position: int) -> None:
        self.truncations += 1
        self.cut_at = min(self.cut_at, position)


class FileRange:
    """`size` bytes of `fd` from `position` on. Holding it holds the file open, even when retention deletes it."""

    __slots__ = ("extent", "fd", "owner", "position", "size", "truncations")

    def __init__(self, fd: int, position: int, size: int, owner: object, extent: Extent | None = None) -> None:
        self.fd = fd
        self.position = position
        self.size = size
        self.owner = owner
        self.extent = extent
        self.truncations = 0 if extent is None else extent.truncations

    def __len__(self) -> int:
        return self.size

    def check(self) -> None:
        """Raises OSError when the segment was truncated since: other bytes may be where these were."""
        extent = self.extent
        if extent is not None and extent.truncations != self.truncations and self.position + self.size > extent.cut_at:
            raise OSError(errno.EIO, "a segment was truncated before it was sent")

    def read(self) -> bytes:
        if self.extent is not None and self.extent.truncations != self.truncations:
            self.check()
        found = os.pread(self.fd, self.size, self.position)
        if len(found) != self.size:
            raise OSError(errno.EIO, "a segment is shorter than it was")
        return found

    def after(self, count: int) -> FileRange:
        """What is left when the first `count` bytes are gone."""
        rest = FileRange(self.fd, self.position + count, self.size - count, self.owner, self.extent)
        rest.truncations = self.truncations
        return rest


EMPTY = FileRange(-1, 0, 0, None)
