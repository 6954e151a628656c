"""A running pipeline on a terminal: one line a query that is drawn anew, or a line now and then in a log."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TextIO

LOG_EVERY_S = 10.0


class Shown(Protocol):
    """A query of a pipeline, or a flow of a project."""

    @property
    def name(self) -> str: ...

    def as_json(self) -> dict[str, Any]: ...


class ProgressLines:
    def __init__(self, output: TextIO, *, quiet: bool) -> None:
        self._output = output
        self._quiet = quiet
        self._redraws = output.isatty()
        self._drawn = 0
        self._last_s = 0.0
        self._drawing = threading.Lock()

    def say(self, text: str) -> None:
        """An event, above the lines that change; from any thread."""
        with self._drawing:
            self._erase()
            print(text, file=self._output, flush=True)

    def show(self, queries: Sequence[Shown]) -> None:
        if self._quiet:
            return
        if not self._redraws and time.monotonic() - self._last_s < LOG_EVERY_S:
            return
        self._last_s = time.monotonic()
        with self._drawing:
            self._draw(queries)
            self._drawn = len(queries) if self._redraws else 0

    def finish(self, queries: Sequence[Shown]) -> None:
        """How it ended; these lines stay."""
        if not self._quiet:
            with self._drawing:
                self._draw(queries)

    def _draw(self, queries: Sequence[Shown]) -> None:
        self._erase()
        for one in queries:
            print(line_of(one.name, one.as_json()), file=self._output)
        self._output.flush()

    def _erase(self) -> None:
        if self._drawn:
            self._output.write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0


def line_of(name: str, told: Mapping[str, Any]) -> str:
    parts = [f"{name}: {told['state']}"]
    if told["rows"] is not None:
        parts += [f"{told['rows']:,} rows", f"{told['rows_a_second']:,.0f} rows/s"]
    if told["lag"] is not None:
        parts.append(f"lag {told['lag']:,}")
    if told["watermark"]:
        parts.append(f"watermark {told['watermark']}")
    if told["restarts"]:
        parts.append(f"{told['restarts']} restarts")
    if findings := findings_of(told):
        parts.append(", ".join(findings))
    return "  ".join(parts)


def findings_of(told: Mapping[str, Any]) -> list[str]:
    """What is wrong with the data: rows that break expectations in this run, and records that can't be read at all."""
    broken = [f"{count:,} break {rule}" for rule, count in told["broken"].items()]
    return broken + [f"{count:,} records of {topic} do not fit" for topic, count in told["rejected"].items()]


def status_rows(status: Mapping[str, Any], *, is_alive: bool) -> list[dict[str, object]]:
    """A status that nobody keeps fresh is that of a pipeline that ended, however it ended."""
    rows = []
    for name, told in status["queries"].items():
        died = not is_alive and status["running"]
        rows.append(
            {
                "query": name,
                "state": "not running" if died else told["state"],
                "rows": told["rows"],
                "rows/s": round(told["rows_a_second"], 1) if is_alive else 0.0,
                "lag": told["lag"],
                "watermark": told["watermark"],
                "restarts": told["restarts"],
                "into": told["into"],
                "reason": told["reason"],
                "broken": told["broken"],
                "rejected": told.get("rejected", {}),  # a status may be older than this command
                "batch": told["batch"],
            }
        )
    return rows
