"""Room that is kept on the disk for what makes room: a deletion has to be written down, on a full disk too."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

RESERVE_BYTES = 1024 * 1024
STEP_BYTES = 128 * 1024  # some deletions; whoever fills the disk takes what is given up and not used at once


class Reserve:
    """A file of nothing, given up step by step and taken again once there is room. Used by one thread."""

    __slots__ = ("_path", "_size")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = 0

    def take(self) -> None:
        """Fill up the reserve, as far as it goes: a disk without room is looked at again later."""
        if self._size == RESERVE_BYTES:
            return
        with contextlib.suppress(OSError), self._path.open("ab", buffering=0) as file:
            file.write(bytes(max(0, RESERVE_BYTES - file.tell())))
            self._size = min(file.tell(), RESERVE_BYTES)

    def give_up_some(self) -> bool:
        """Whether there is more room than before."""
        try:
            held = self._path.stat().st_size  # another broker of this machine may have taken it, or given it up
            self._size = max(0, min(held, RESERVE_BYTES) - STEP_BYTES)
            os.truncate(self._path, self._size)
        except OSError:
            return False
        return held > self._size
