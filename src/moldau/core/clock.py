"""Time enters as an argument; this is the edge where it is read."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since the epoch, as records are stamped."""
        ...

    def elapsed_ms(self) -> int:
        """Milliseconds since some moment, of a clock that nobody sets: by it is judged how long something took."""
        ...


class SystemClock:
    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def elapsed_ms(self) -> int:
        return monotonic_ms()


def monotonic_ms() -> int:
    """Milliseconds since some moment, the same for all processes of a machine until it is started again.

    Nobody can set this clock, and it stands still while the machine is suspended.
    """
    return time.monotonic_ns() // 1_000_000


def elapsed_s() -> float:
    """Seconds since some moment, also those in which the machine was suspended, as other machines count them."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)  # Linux has it
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)
