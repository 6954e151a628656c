"""Where records go that were read: filtered, counted and printed."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Callable
from typing import Protocol

from moldau.cli.failures import UsageError
from moldau.cli.progress import as_records, progress
from moldau.client.fetched import FetchedRecord

Format = Callable[[FetchedRecord], bytes]
Filter = Callable[[FetchedRecord], bool]


class Sink(Protocol):
    """What becomes of the records."""

    @property
    def is_full(self) -> bool:
        """It wants no more."""
        ...

    def take(self, record: FetchedRecord) -> None: ...

    def flush(self) -> None: ...


class Printer:
    """`limit` counts what is printed, not what is read."""

    def __init__(self, show: Format, *, keeps: Filter | None = None, limit: int | None = None) -> None:
        self._show = show
        self._keeps = keeps
        self._left = limit
        self._out = sys.stdout.buffer
        self._progress = progress("consume", total=limit, show=as_records, prints=True)
        self._printed = 0

    @property
    def is_full(self) -> bool:
        return self._left is not None and self._left <= 0

    def take(self, record: FetchedRecord) -> None:
        if self._keeps is None or self._keeps(record):
            self._out.write(self._show(record))
            self._printed += 1
            if self._left is not None:
                self._left -= 1

    def flush(self) -> None:
        self._out.flush()
        self._progress.at(self._printed)

    def close(self) -> None:
        self._out.flush()
        self._progress.clear()


def chosen_filter(options: Namespace) -> Filter | None:
    """All that are given have to find something; None if none is given."""
    tests: list[Filter] = []
    for option, contents in (
        ("grep", lambda record: (record.key, record.value)),
        ("grep_key", lambda record: (record.key,)),
        ("grep_value", lambda record: (record.value,)),
        ("grep_header", lambda record: (name + b"=" + (value or b"") for name, value in record.headers)),
    ):
        if getattr(options, option) is not None:
            tests.append(_finds(getattr(options, option), f"--{option.replace('_', '-')}", contents))
    return (lambda record: all(test(record) for test in tests)) if tests else None


def _finds(text: str, option: str, contents: Callable[[FetchedRecord], object]) -> Filter:
    try:
        # Of text and not of bytes, so that (?i) and \w know every alphabet; what is no text is searched as well.
        pattern = re.compile(text)
    except re.error as wrong:
        raise UsageError(f"{option}: {text!r} is no regular expression: {wrong}") from None

    def finds(record: FetchedRecord) -> bool:
        found = contents(record)
        return any(each is not None and pattern.search(each.decode(errors="replace")) for each in found)  # type: ignore[attr-defined]

    return finds
