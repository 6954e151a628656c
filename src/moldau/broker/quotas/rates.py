"""How much of something came in a second, and for how long to pause after too much: Kafka's Rate and TokenBucket.

All times are milliseconds of a clock that nobody sets.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple


class Windows(NamedTuple):
    """`quota.window.num` samples of `quota.window.size.seconds` each; the last one is not over yet."""

    samples: int = 11
    size_ms: int = 1_000

    @property
    def whole_s(self) -> float:
        """The time that a rate is at least averaged over."""
        return (self.samples - 1) * self.size_ms / 1_000


class SampledRate:
    """An average over the samples of the last windows. A client that begins counts as if it had been idle before."""

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: deque[list[float]] = deque()  # of each when it began, its last event, and its sum

    def record(self, amount: float, windows: Windows, now_ms: int) -> None:
        samples = self._samples
        if not samples or now_ms - samples[-1][0] >= windows.size_ms:
            samples.append([now_ms, now_ms, 0.0])
            if len(samples) > windows.samples + 1:  # one more, for the oldest overlaps what is looked at
                samples.popleft()
        samples[-1][1] = now_ms
        samples[-1][2] += amount

    def total(self, windows: Windows, now_ms: int) -> float:
        samples = self._samples
        while samples and now_ms - samples[0][1] >= windows.samples * windows.size_ms:
            samples.popleft()
        return sum([sample[2] for sample in samples])

    def throttle_ms(self, limit: float, windows: Windows, now_ms: int) -> int:
        """How long nothing may come, for the average to be back at the limit; 0 where it is not above it."""
        total = self.total(windows, now_ms)
        elapsed_ms = now_ms - self._samples[0][0] if self._samples else 0
        missing = windows.samples - 1 - elapsed_ms // windows.size_ms
        over_ms = max(1, elapsed_ms + max(0, missing) * windows.size_ms)
        rate = total / (over_ms / 1_000)
        return 0 if rate <= limit else _rounded((rate - limit) / limit * over_ms)


class TokenBucket:
    """Refilled at the limit, up to what all windows allow together; it may be overdrawn once, and is then paid back."""

    __slots__ = ("_filled_ms", "_tokens")

    def __init__(self) -> None:
        self._tokens = math.inf  # as much as the first limit allows
        self._filled_ms = 0

    def take(self, amount: float, limit: float, windows: Windows, now_ms: int) -> None:
        self._tokens = self._refilled(limit, windows, now_ms) - amount
        self._filled_ms = now_ms

    def throttle_ms(self, limit: float, windows: Windows, now_ms: int) -> int:
        """How long it takes until nothing is owed; 0 while something may be taken."""
        tokens = self._refilled(limit, windows, now_ms)
        return 0 if tokens >= 0 else _rounded(-tokens / limit * 1_000)

    def _refilled(self, limit: float, windows: Windows, now_ms: int) -> float:
        most = windows.samples * windows.size_ms / 1_000 * limit
        return min(most, self._tokens + limit * (now_ms - self._filled_ms) / 1_000)


def _rounded(milliseconds: float) -> int:
    """As Java rounds, within what the wire has room for."""
    return math.floor(min(milliseconds + 0.5, 2**31 - 1))  # of a tiny limit they are infinitely many
