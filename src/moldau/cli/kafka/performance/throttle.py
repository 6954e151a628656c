"""How many records a second a tool may send."""

from __future__ import annotations

import time

RECORDS_AT_ONCE_MAX = 1_000
PORTIONS_PER_S = 100  # a rate is kept in portions so small that nobody sees them


class Throttle:
    def __init__(self, records_per_s: float) -> None:
        """A negative rate is none."""
        self._rate = records_per_s
        self._start_s = time.monotonic()

    @property
    def records_at_once(self) -> int:
        if self._rate < 0:
            return RECORDS_AT_ONCE_MAX
        return max(1, min(RECORDS_AT_ONCE_MAX, int(self._rate / PORTIONS_PER_S)))

    def ahead_s(self, sent: int) -> float:
        """How long to wait before the next record."""
        if self._rate < 0:
            return 0.0
        return max(0.0, self._start_s + sent / self._rate - time.monotonic())
