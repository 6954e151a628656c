"""The memory of a process and of all below it, looked at while they work."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.spark.exactly_once.processes import descendants, words_of

LOOK_S = 0.5


@dataclass(slots=True)
class Peak:
    """In MB; each part at its own highest, so that they may add up to more than the whole."""

    total: float = 0.0
    java: float = 0.0
    python: float = 0.0

    def look(self, root: int) -> None:
        java = python = 0.0
        for pid in (root, *descendants([root])):
            words = words_of(pid)
            if words and Path(words[0]).name == "java":
                java += proportional_mb(pid)
            else:
                python += proportional_mb(pid)
        self.java, self.python = max(self.java, java), max(self.python, python)
        self.total = max(self.total, java + python)


def proportional_mb(pid: int) -> float:
    """Pages that several processes share are shared out among them: forked workers share most of theirs."""
    try:
        found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0.0
    return int(found[1]) / 1024 if found else 0.0


@contextmanager
def watched(root: int) -> Iterator[Peak]:
    peak, over = Peak(), threading.Event()

    def watch() -> None:
        peak.look(root)
        while not over.wait(LOOK_S):
            peak.look(root)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()
