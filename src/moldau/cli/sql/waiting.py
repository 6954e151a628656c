"""A line on the terminal that says what an answer waits for, and for how long; it goes when the answer comes."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

STANDARD_ERROR = 2
TICK_S = 0.5
ERASE = "\r\x1b[K"

Item = TypeVar("Item")


def waiting_line() -> WaitingLine:
    """For a person at a terminal; a script is told nothing."""
    if not sys.stderr.isatty():
        return WaitingLine(None)
    # A descriptor of its own: while Spark starts, standard error goes through a filter that waits for whole lines.
    return WaitingLine(os.fdopen(os.dup(STANDARD_ERROR), "w"))


class WaitingLine:
    def __init__(self, output: TextIO | None) -> None:
        self._output = output
        self._lock = threading.Lock()
        self._text: str | None = None
        self._since_s = 0.0
        if output is not None:
            threading.Thread(target=self._tick, name="waiting line", daemon=True).start()

    def says(self, text: str) -> None:
        with self._lock:
            self._text, self._since_s = text, time.monotonic()
            self._draw()

    def clear(self) -> None:
        with self._lock:
            if self._text is not None and self._output is not None:
                self._output.write(ERASE)
                self._output.flush()
            self._text = None

    def until_first(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items; the line goes with the first of them, or with the end."""
        try:
            for item in items:
                self.clear()
                yield item
        finally:
            self.clear()

    def _tick(self) -> None:
        while True:
            time.sleep(TICK_S)
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        if self._text is not None and self._output is not None:
            self._output.write(f"{ERASE}{self._text} … {time.monotonic() - self._since_s:.0f} s")
            self._output.flush()
