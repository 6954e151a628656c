"""A broker's disk: real files in memory, and what a loss of power leaves of those that were not synced."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

SECTOR_BYTES = 512  # what a disk writes whole or not at all
GROWING = (".log", ".index", ".timeindex", ".txnindex")  # what is written piece by piece

KEPT, SYNCED, MIXED = "all was written in time", "only what was synced", "some of both, and torn"


class Disk:
    """Each process of a broker has a folder of its own, a copy of what the one before left.

    So whatever a dead process still does to its files, nobody sees it.
    """

    def __init__(self, folder: Path, random: Random) -> None:
        self.path = folder / "0"
        self._folder = folder
        self._random = random
        self._number = 0
        self._synced: dict[int, bytes] = {}  # what a file had when it was synced, by its inode
        self._names: dict[str, frozenset[str]] = {}  # what a folder had in it when it was synced
        self.path.mkdir(parents=True)

    def note_sync(self, path: str) -> None:
        if os.path.isdir(path):
            self._names[path] = frozenset(os.listdir(path))
        elif os.path.exists(path):
            with open(path, "rb") as file:
                self._synced[os.fstat(file.fileno()).st_ino] = file.read()

    def owns(self, path: str) -> bool:
        return path.startswith(f"{self._folder}/")

    def outlive(self, *, power_is_lost: bool) -> None:
        """What the next process finds."""
        before = self._begin()
        how = self._random.choice([KEPT, SYNCED, MIXED, MIXED]) if power_is_lost else KEPT
        self._copy(str(before), str(self.path), how, power_is_lost=power_is_lost)

    def lose(self) -> None:
        """The next process finds nothing."""
        self._begin().rename(self._folder / f"lost-{self._number}")

    def _begin(self) -> Path:
        before, self._number = self.path, self._number + 1
        self.path = self._folder / str(self._number)
        self.path.mkdir()
        return before

    def _copy(self, source: str, target: str, how: str, *, power_is_lost: bool) -> None:
        known = self._names.get(source, frozenset())
        if not power_is_lost:
            self._names[target] = known
        is_vanishing = False  # names are written in the order of their making: with one of them all later ones go
        for entry in sorted(os.scandir(source), key=lambda each: (each.inode(), each.name)):
            path = f"{target}/{entry.name}"
            if entry.is_dir():
                os.mkdir(path)
                self._copy(entry.path, path, how, power_is_lost=power_is_lost)
                continue
            with open(entry.path, "rb") as file:
                content = file.read()
            synced = self._synced.get(entry.inode())
            if synced is None and entry.name not in known:
                is_vanishing = is_vanishing or how == SYNCED or (how == MIXED and self._random.random() < 0.2)
                if is_vanishing:
                    continue
            is_whole = len(content) <= SECTOR_BYTES and not entry.name.endswith(GROWING)
            left = self._left(content, synced or b"", how, is_whole=is_whole)
            with open(path, "wb") as file:
                file.write(left)
                if power_is_lost or synced is not None:
                    self._synced[os.fstat(file.fileno()).st_ino] = left if power_is_lost else synced or b""
        if power_is_lost:
            self._names[target] = frozenset(os.listdir(target))

    def _left(self, content: bytes, synced: bytes, how: str, *, is_whole: bool) -> bytes:
        if how == KEPT or content == synced:
            return content
        if how == SYNCED:
            return synced
        if not content.startswith(synced):  # it was truncated or written over since
            return self._random.choice([content, synced])
        if is_whole:
            return self._random.choice([content, synced, bytes(len(content))])
        cut = self._random.randint(len(synced), len(content))
        zeros = self._random.choice([0, 0, len(content) - cut])  # a file that had grown, and not its blocks
        return content[:cut] + bytes(zeros)


@contextmanager
def syncs_noted(disk_of: Callable[[str], Disk | None]) -> Iterator[None]:
    """fsync tells a disk what it keeps; the real one has nothing to do, for the files are in memory."""
    real = os.fsync

    def note(fd: int) -> None:
        path = os.readlink(f"/proc/self/fd/{fd}")
        disk = disk_of(path)
        if disk is None:
            real(fd)
        else:
            disk.note_sync(path)

    os.fsync = note  # type: ignore[assignment]
    try:
        yield
    finally:
        os.fsync = real
