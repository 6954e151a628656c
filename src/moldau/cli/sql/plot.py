"""A stream of answers as bars in the terminal: the last column is drawn, what stands before it names the bar."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, TextIO

from moldau.cli.failures import UsageError
from moldau.cli.sql.output import text

BAR, LAST = "#", "."  # a bar of less than one character is still there
BARS_MAX = 40  # the newest names; a window that is over makes room for the next
LABEL_MAX = 40
WIDTH_MIN = 10


class Plot:
    """On a terminal it is drawn anew with every answer; elsewhere it is a line for each, with its bar."""

    def __init__(self, columns: Sequence[str], output: TextIO, *, width: int | None = None) -> None:
        self._columns = columns
        self._output = output
        self._redraws = output.isatty()
        self._width = width or shutil.get_terminal_size().columns
        self._values: dict[str, float] = {}
        self._drawn = 0

    def add(self, row: Sequence[Any]) -> None:
        label, value = self._point(row)
        # A name that has changed becomes the newest only by being new: bars should not jump.
        self._values[label] = value
        while len(self._values) > BARS_MAX:
            del self._values[next(iter(self._values))]
        if self._redraws:
            self._draw()
        else:
            print(self._line(label, value, self._label_width()), file=self._output, flush=True)

    def _point(self, row: Sequence[Any]) -> tuple[str, float]:
        *names, value = row
        number = 0.0 if value is None else value
        if isinstance(number, bool) or not isinstance(number, int | float | Decimal):
            column = self._columns[-1]
            raise UsageError(f"--plot draws the last column, and {column} is no number but {text(value)!r}")
        label = " ".join(text(name) for name in names)
        return label[:LABEL_MAX], float(number)

    def _label_width(self) -> int:
        return max(len(label) for label in self._values)

    def _draw(self) -> None:
        lines = [self._line(label, value, self._label_width()) for label, value in self._values.items()]
        erase = f"\x1b[{self._drawn}A\x1b[J" if self._drawn else ""
        self._output.write(erase + "\n".join(lines) + "\n")
        self._output.flush()
        self._drawn = len(lines)

    def _line(self, label: str, value: float, label_width: int) -> str:
        """Never wider than the terminal: a line that wraps could not be erased."""
        told = _told(value)
        # The same room for every bar, or their lengths would say nothing.
        room = max(WIDTH_MIN, self._width - 4 - label_width - max(len(_told(one)) for one in self._values.values()))
        largest = max((abs(one) for one in self._values.values() if math.isfinite(one)), default=0.0)
        length = int(room * abs(value) / largest) if largest and math.isfinite(value) else 0
        bar = BAR * length or (LAST if value else "")
        return f"{label.ljust(label_width)}  {bar} {told}".rstrip()


def _told(value: float) -> str:
    return f"{value:,.10g}"


def plot_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], output: TextIO) -> None:
    plot = Plot(columns, output)
    print("  ".join(columns), file=output, flush=True)
    for row in rows:
        plot.add(row)
