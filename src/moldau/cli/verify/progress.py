"""What a run tells while it lasts, on standard error: a line for each step, and at a terminal one that moves."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

EVERY_S = 0.2  # how often the moving line is drawn
CLEAR = "\r\x1b[K"


class Progress:
    def __init__(self) -> None:
        self._begun_s = time.monotonic()
        self._is_moving = sys.stderr is not None and sys.stderr.isatty()
        self._drawn_s = 0.0
        self._scenario = ""
        self.load: Callable[[], tuple[int, int]] | None = None
        """How many records are acknowledged and read so far."""
        self._before = (0.0, 0)
        self._rate = 0.0

    def scenario(self, name: str, number: int, count: int) -> None:
        self._scenario = f"[{number}/{count}] {name}"

    def step(self, what: str) -> None:
        if sys.stderr is None:
            return
        prefix = CLEAR if self._is_moving else ""
        elapsed_s = time.monotonic() - self._begun_s
        print(f"{prefix}{elapsed_s:6.1f} s  {self._scenario}: {what}", file=sys.stderr, flush=True)

    def tick(self) -> None:
        """Called while something is waited for."""
        now_s = time.monotonic()
        if not self._is_moving or self.load is None or now_s < self._drawn_s + EVERY_S:
            return
        self._drawn_s = now_s
        acknowledged, read = self.load()
        then_s, known = self._before
        if now_s - then_s >= 1:
            self._rate = max(0.0, (acknowledged - known) / (now_s - then_s)) if then_s else 0.0
            self._before = (now_s, acknowledged)
        line = f"{acknowledged} acknowledged, {read} read, {self._rate:.0f}/s"
        print(f"{CLEAR}{now_s - self._begun_s:6.1f} s  {line}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._is_moving:
            print(CLEAR, end="", file=sys.stderr, flush=True)
