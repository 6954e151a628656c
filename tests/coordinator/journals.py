"""A journal in memory, at the seam below the runtime: it commits when it is told to, and fails when it is told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moldau.coordinator.journal import Chunk, CoordinatorRecord, StoredRecord, TransactionalProducer
from moldau.core.errors import ErrorCode


class MemoryJournal:
    def __init__(self, *, commits_at_once: bool = True, entry_bytes_max: int = 1_000_000) -> None:
        self.appends: list[list[CoordinatorRecord]] = []
        self.producers: list[TransactionalProducer | None] = []
        self.entry_bytes_max = entry_bytes_max
        self.is_ours = True
        self.refusal: ErrorCode | None = None
        self.failure: ErrorCode | None = None
        self.fails_with: Exception | None = None
        self.committed_offset = 0
        self._commits_at_once = commits_at_once
        self._on_change: Callable[[], None] = lambda: None

    @property
    def end_offset(self) -> int:
        return sum(len(append) for append in self.appends)

    def append(
        self, entries: Sequence[CoordinatorRecord], now_ms: int, producer: TransactionalProducer | None = None
    ) -> None:
        if self.fails_with is not None:
            raise self.fails_with
        self.appends.append(list(entries))
        self.producers.append(producer)
        if self._commits_at_once:
            self.committed_offset = self.end_offset

    def read(self, offset: int, bytes_max: int) -> Chunk:
        entries = [entry for append in self.appends for entry in append]
        stored = [StoredRecord(memoryview(key), None if value is None else memoryview(value)) for key, value in entries]
        return Chunk(stored[offset:], len(entries))

    def commit(self) -> None:
        self.committed_offset = self.end_offset
        self._on_change()

    def lose_what_was_appended(self) -> None:
        """The fsync failed."""
        self.failure = ErrorCode.KAFKA_STORAGE_ERROR
        self._on_change()

    def lose(self) -> None:
        self.is_ours = False
        self._on_change()

    def watch(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change

    def unwatch(self) -> None:
        self._on_change = lambda: None
