"""`log.cleaner.io.max.bytes.per.second`: how fast compaction may read and write, for the disk is others' too."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

PAUSE_S_MIN = 0.01  # less than this is saved up: a pause for each batch would cost more than it spares


def unlimited() -> float:
    return math.inf


class Throttle:
    """Bytes are paid for with time, after they were read or written. The rate is asked for anew each time."""

    __slots__ = ("_bytes_per_s_max", "_now_s", "_paid_s")

    def __init__(
        self, bytes_per_s_max: Callable[[], float] = unlimited, *, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._bytes_per_s_max = bytes_per_s_max
        self._now_s = now_s
        self._paid_s = -math.inf  # up to this moment the time is spent

    def pause_s(self, count_bytes: int) -> float:
        """How long to pause after that many more bytes; 0 for a debt that is too small to bother."""
        now_s = self._now_s()
        self._paid_s = max(self._paid_s, now_s) + count_bytes / max(self._bytes_per_s_max(), 1.0)
        due_s = self._paid_s - now_s
        return due_s if due_s >= PAUSE_S_MIN else 0.0
