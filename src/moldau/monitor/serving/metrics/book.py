"""Metrics that are kept packed: those of 10,000 groups are tens of megabytes as text, and two as they are here."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from moldau.core.exposition import GAUGE

LINES_MAX = 2_000  # that wait to be packed: some hundred kilobytes
FASTEST = 1


class Metric:
    """One name with all of its samples, which stand together as the format wants it."""

    __slots__ = ("_lines", "_packed", "add", "head", "name")

    def __init__(self, name: str, help_text: str, kind: str) -> None:
        self.name = name
        self.head = f"# HELP {name} {help_text}\n# TYPE {name} {kind}\n".encode()
        self._lines: list[str] = []
        self._packed: list[bytes] = []
        self.add = self._lines.append
        """A line, as `name{labels} value`."""

    def pack(self, lines_max: int = 0) -> None:
        """What waits, if it is more than that."""
        if len(self._lines) > lines_max:
            text = "\n".join(self._lines) + "\n"
            self._packed.append(zlib.compress(text.encode(), FASTEST))
            self._lines.clear()

    def blocks(self) -> Iterator[bytes]:
        """The samples as text."""
        for each in self._packed:
            yield zlib.decompress(each)

    @property
    def packed_bytes(self) -> int:
        return sum(map(len, self._packed))


@dataclass(slots=True)
class Book:
    """The metrics of one cluster."""

    metrics: dict[str, Metric] = field(default_factory=dict)

    def metric(self, name: str, help_text: str, kind: str = GAUGE) -> Metric:
        found = self.metrics.get(name)
        if found is None:
            found = self.metrics[name] = Metric(name, help_text, kind)
        return found

    def pack_full(self) -> None:
        """Called now and then by whoever adds thousands of lines."""
        for each in self.metrics.values():
            each.pack(LINES_MAX)

    def close(self) -> None:
        for each in self.metrics.values():
            each.pack()


def text_of(books: list[Book]) -> Iterator[bytes]:
    """Each metric once, with the samples of all of these."""
    heads: dict[str, bytes] = {}
    for book in books:
        for name, metric in book.metrics.items():
            heads.setdefault(name, metric.head)
    for name, head in heads.items():
        yield head
        for book in books:
            if name in book.metrics:
                yield from book.metrics[name].blocks()
