"""One broker per log directory, held by a lock that ends with its process."""

from __future__ import annotations

import contextlib
import fcntl
import os

from moldau.log.directories.meta_properties import UnusableDirectory

FILE_NAME = ".lock"


class DirectoryLock:
    """Two locks on one file: Apache Kafka sees the first kind, another broker of this process only the second."""

    __slots__ = ("_fd",)

    def __init__(self, directory: str) -> None:
        path = f"{directory}/{FILE_NAME}"
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            who = f"process {holder}" if holder else "another broker"
            raise UnusableDirectory(
                f"log directory {directory} is in use: {who} holds {path}; stop it or choose another (log.dirs)"
            ) from None
        with contextlib.suppress(OSError):  # the number is for people, and a full disk has no room for it
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Whatever the disk says: closing the file is what ends the lock."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = -1
