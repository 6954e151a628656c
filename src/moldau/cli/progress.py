"""How far long work is: one line on the terminal that goes when the work ends, and nothing for a script."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

CLEAR = "\r\x1b[K"
PATIENCE_S = 1.0  # who waits for less needs no line
PAUSE_S = 0.2  # from one look at it to the next
BAR_CHARS = 20
_UNITS = (("GB", 10**9), ("MB", 10**6), ("kB", 10**3))


class ProgressLine:
    """Written over itself on standard error, and gone at the end, so that nothing of it stands among results."""

    def __init__(self, output: TextIO | None = None, *, prints: bool = False) -> None:
        """Where a tool `prints` to the same terminal, that is progress enough."""
        is_seen = sys.stderr is not None and sys.stderr.isatty() and not (prints and sys.stdout.isatty())
        self._output = output or (sys.stderr if is_seen else None)
        self._is_there = False

    @property
    def is_shown(self) -> bool:
        return self._output is not None

    def tell(self, text: str) -> None:
        if self._output is not None:
            width = shutil.get_terminal_size().columns - 1
            print(f"{CLEAR}{text[:width]}", end="", file=self._output, flush=True)
            self._is_there = True

    def clear(self) -> None:
        """Also before something else is said; the line comes back when it is told again."""
        if self._is_there:
            print(CLEAR, end="", file=self._output, flush=True)
            self._is_there = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, wrong: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()


class Progress:
    """Of work that takes a while, with a rate; `total` is what there is of it, or None where nobody knows."""

    def __init__(
        self,
        line: ProgressLine,
        what: str,
        *,
        total: int | None = None,
        show: Callable[[int], str] = str,
        elapsed_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._line = line
        self._is_shown = line.is_shown
        self._what = what
        self._total = total
        self._show = show
        self._elapsed_s = elapsed_s
        self._begun_s = elapsed_s()
        self._next_s = self._begun_s + PATIENCE_S
        self._done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, wrong: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def add(self, amount: int) -> None:
        self.at(self._done + amount)

    def at(self, done: int) -> None:
        self._done = done
        if self._is_shown and (now_s := self._elapsed_s()) >= self._next_s:
            self._next_s = now_s + PAUSE_S
            self._line.tell(self._words(now_s - self._begun_s))

    def clear(self) -> None:
        self._line.clear()

    def _words(self, taken_s: float) -> str:
        rate = self._done / taken_s
        if self._total is None:
            return f"{self._what}: {self._show(self._done)}, {self._show(round(rate))}/s"
        part = min(1.0, self._done / self._total) if self._total else 1.0
        bar = ("#" * round(part * BAR_CHARS)).ljust(BAR_CHARS, ".")
        left_s = round((self._total - self._done) / rate) if rate and self._done < self._total else 0
        return (
            f"{self._what}: [{bar}] {part:4.0%} of {self._show(self._total)}, {self._show(round(rate))}/s,"
            f" {left_s // 60}:{left_s % 60:02} left"
        )


def progress(what: str, *, total: int | None, show: Callable[[int], str], prints: bool) -> Progress:
    return Progress(ProgressLine(prints=prints), what, total=total, show=show)


def as_bytes(amount: int) -> str:
    return next((f"{amount / size:.1f} {unit}" for unit, size in _UNITS if amount >= size), f"{amount} bytes")


def as_records(amount: int) -> str:
    return f"{amount:,} records"
