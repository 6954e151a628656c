"""`/metrics`: written once for each look, kept packed, and sent to as many as ask."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from types import MappingProxyType

from moldau.core.exposition import escaped
from moldau.monitor.judging import Judged
from moldau.monitor.service import Monitor
from moldau.monitor.serving.metrics.book import Book, text_of
from moldau.monitor.serving.metrics.burrow import write_burrow
from moldau.monitor.serving.metrics.kafka_exporter import write_kafka_exporter
from moldau.monitor.serving.metrics.kafka_lag_exporter import write_kafka_lag_exporter
from moldau.monitor.serving.metrics.kminion import write_kminion
from moldau.monitor.serving.metrics.labels import Page, Write
from moldau.monitor.serving.metrics.own import write_lag_exporter_poll, write_own
from moldau.monitor.watching import Watch

ASKED_FOR_MS = 300_000  # how long after a scrape each look is written down before the next one asks
LAG_EXPORTER = "kafka_lag_exporter"
WRITERS: Mapping[str, Write] = MappingProxyType(
    {
        "burrow": write_burrow,
        "kafka_exporter": write_kafka_exporter,
        LAG_EXPORTER: write_kafka_lag_exporter,
        "kminion": write_kminion,
    }
)
GZIP_WINDOW = 31  # for zlib: a gzip header, and the largest window
FASTEST = 1


@dataclass(slots=True)
class Written:
    """A judged look, as it was written down."""

    judged: Judged
    book: Book
    took_s: float


@dataclass(slots=True)
class Pages:
    monitor: Monitor
    asked_ms: int | None = None
    _written: dict[str, Written] = field(default_factory=dict)
    _locks: dict[str, Lock] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._locks = {name: Lock() for name in self.monitor.watches}

    def looked(self, cluster: str) -> None:
        """In the thread that looked, so that a scrape waits for nothing; while nobody scrapes, nothing is written."""
        if self.asked_ms is not None and self.monitor.clock.elapsed_ms() - self.asked_ms < ASKED_FOR_MS:
            self.written(self.monitor.watches[cluster])

    def text(self) -> Iterator[bytes]:
        self.asked_ms = self.monitor.clock.elapsed_ms()
        own, books = Book(), []
        for watch in self.monitor.watches.values():
            written = self.written(watch)
            write_own(own, watch, written.took_s if written else None)
            if written is not None:
                books.append(written.book)
                if LAG_EXPORTER in self.monitor.settings.metrics:
                    write_lag_exporter_poll(own, watch)
        own.close()
        return text_of([own, *books])

    def written(self, watch: Watch) -> Written | None:
        with self._locks[watch.name]:
            judged, found = watch.state, self._written.get(watch.name)
            if judged is None or (found is not None and found.judged is judged):
                return found
            found = self._written[watch.name] = self._write(watch.name, judged)
            return found

    def _write(self, cluster: str, judged: Judged) -> Written:
        began_s = time.perf_counter()
        name = escaped(cluster)
        page = Page(name, "" if len(self.monitor.watches) == 1 else f'cluster="{name}",', judged)
        book = Book()
        for family, write in WRITERS.items():
            if family in self.monitor.settings.metrics:
                write(book, page)
        book.close()
        return Written(judged, book, time.perf_counter() - began_s)


def zipped(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """One stream of gzip, a piece at a time."""
    packer = zlib.compressobj(FASTEST, zlib.DEFLATED, GZIP_WINDOW)
    for block in blocks:
        piece = packer.compress(block)
        if piece:
            yield piece
    yield packer.flush()
