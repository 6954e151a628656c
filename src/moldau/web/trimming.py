"""Memory back to the system: glibc keeps what was freed in the arenas of threads, which streams have several of."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

PAUSE_S = 1.0  # many streams that end together are one trim


def _malloc_trim() -> Callable[[int], object] | None:
    """None where the C library has none, such as musl's."""
    try:
        found: Callable[[int], object] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return found


class Trimming:
    def __init__(self) -> None:
        self._trim = _malloc_trim()
        self._lock = threading.Lock()
        self._is_due = False

    def soon(self) -> None:
        """From any thread: something large was freed."""
        with self._lock:
            if self._trim is None or self._is_due:
                return
            self._is_due = True
        timer = threading.Timer(PAUSE_S, self._now)
        timer.daemon = True
        timer.start()

    def _now(self) -> None:
        with self._lock:
            self._is_due = False
        if self._trim is not None:
            self._trim(0)
