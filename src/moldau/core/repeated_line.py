"""A line of the log that says something that may go on for long, and is tried many times a second."""

from __future__ import annotations

from collections.abc import Callable
from logging import Logger
from time import monotonic

INTERVAL_S = 60.0


class RepeatedLine:
    """Said at once, and then at most once a minute, with how many were left out."""

    __slots__ = ("_clock_s", "_left_out", "_level", "_logger", "_said_s")

    def __init__(self, logger: Logger, level: int, *, clock_s: Callable[[], float] = monotonic) -> None:
        self._logger = logger
        self._level = level
        self._clock_s = clock_s
        self._said_s = float("-inf")
        self._left_out = 0

    def say(self, line: str, *, exc_info: BaseException | None = None) -> None:
        now_s = self._clock_s()
        if now_s - self._said_s < INTERVAL_S:
            self._left_out += 1
            return
        count = f" ({self._left_out} more like it since the last line)" if self._left_out else ""
        self._said_s, self._left_out = now_s, 0
        self._logger.log(self._level, "%s%s", line, count, exc_info=exc_info)
