"""/proc, /sys and /run through one seam: another root in their place, and why a file could not be read."""

from __future__ import annotations

import errno
import os
from pathlib import Path

MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ESRCH})
FILE_BYTES_MAX = 1 << 20  # /proc/self/mountinfo of a machine with thousands of mounts


class SystemFiles:
    """`refused` holds each file that is there and could not be read, with the reason."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root
        self.refused: dict[str, str] = {}

    def text(self, path: str) -> str | None:
        """None for a file that is missing, or that can't be read."""
        try:
            with (self.root / path.lstrip("/")).open(encoding="utf-8", errors="replace") as file:
                return file.read(FILE_BYTES_MAX).strip()
        except OSError as wrong:
            self._note(path, wrong)
            return None

    def number(self, path: str) -> int | None:
        text = self.text(path)
        return int(text) if text is not None and text.lstrip("-").isdecimal() else None

    def names(self, path: str, *, quiet: bool = False) -> list[str]:
        """Of a folder. `quiet` is for folders of other users' processes, which nobody expects to read."""
        try:
            return sorted(os.listdir(self.root / path.lstrip("/")))
        except OSError as wrong:
            if not quiet:
                self._note(path, wrong)
            return []

    def link(self, path: str) -> str:
        try:
            return os.readlink(self.root / path.lstrip("/"))
        except OSError:
            return ""

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.root / path.lstrip("/"))

    def owner(self, path: str) -> int | None:
        try:
            return os.stat(self.root / path.lstrip("/")).st_uid
        except OSError:
            return None

    def _note(self, path: str, wrong: OSError) -> None:
        if wrong.errno not in MISSING:
            self.refused["/" + path.lstrip("/")] = wrong.strerror or str(wrong)
