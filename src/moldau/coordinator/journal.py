"""Where a coordinator keeps its facts: one partition of an internal topic, as the runtime wants to see it."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, Protocol, TypeAlias

from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import Offset
from moldau.core.limits import DECOMPRESSED_BATCH_BYTES_MAX
from moldau.log.partition_log import PartitionLog
from moldau.log.producers.end_transaction_marker import read_marker
from moldau.log.producers.producer_state import Marker
from moldau.replication.partition import Partition
from moldau.wire.batch import (
    CONTROL,
    NO_PRODUCER_ID,
    TRANSACTIONAL,
    BatchHeader,
    Record,
    batches,
    build_batch,
    records,
)

CoordinatorRecord: TypeAlias = tuple[bytes, bytes | None]
"""A key and a value, None for a tombstone."""
Flush: TypeAlias = Callable[[PartitionLog], "Future[None]"]
"""Done when all that a log holds at the moment of the call is on the disk; OSError when it could not be written."""


class TransactionalProducer(NamedTuple):
    """In whose transaction something is written."""

    producer_id: int
    epoch: int
    ends: bool = False
    """The entry is the marker that ends the transaction."""
    transaction_version: int = 0


class StoredRecord(NamedTuple):
    """A record of the journal as it is read back."""

    key: memoryview
    value: memoryview | None
    producer_id: int = NO_PRODUCER_ID
    """Of the transaction that the record belongs to."""
    marker: Marker | None = None
    """Set, and key and value mean nothing, where that transaction ends."""


class Chunk(NamedTuple):
    """Some of a journal's records, and where the next ones begin."""

    records: Iterable[StoredRecord]
    """To be gone through once: they are decoded on the way."""
    next_offset: int


class Journal(Protocol):
    """A log that one coordinator alone writes to."""

    @property
    def end_offset(self) -> int: ...

    @property
    def committed_offset(self) -> int:
        """Everything below it survives the loss of this broker."""
        ...

    @property
    def entry_bytes_max(self) -> int: ...

    @property
    def is_ours(self) -> bool:
        """False when another broker leads, or the partition is gone."""
        ...

    @property
    def refusal(self) -> ErrorCode | None:
        """Why an append would be refused now, as far as that can be told before. The state need not change then."""
        ...

    @property
    def failure(self) -> ErrorCode | None:
        """Why entries that were appended may not be counted on."""
        ...

    def append(
        self, entries: Sequence[CoordinatorRecord], now_ms: int, producer: TransactionalProducer | None = None
    ) -> None:
        """Write them as one batch. Raises ApiError, and then nothing was written."""
        ...

    def read(self, offset: int, bytes_max: int) -> Chunk:
        """Also what is not known to be committed: a new leader learns that later, and it was decided all the same."""
        ...

    def watch(self, on_change: Callable[[], None]) -> None:
        """Call it when more is committed or the partition is lost."""
        ...

    def unwatch(self) -> None: ...


class PartitionJournal:
    """A journal in a partition that this broker leads, for as long as that epoch of its leadership lasts."""

    __slots__ = ("_flush", "_flushing", "_leader_epoch", "_on_change", "_partition", "_unflushed_from", "failure")

    def __init__(self, partition: Partition, flush: Flush) -> None:
        """`flush` makes entries durable where `flush.messages` asks for it; until then they are not committed."""
        self._partition = partition
        self._flush = flush
        self._flushing: Future[None] | None = None
        self._unflushed_from: int | None = None
        self.failure: ErrorCode | None = None
        self._leader_epoch = partition.leader_epoch
        self._on_change: Callable[[], None] | None = None

    @property
    def start_offset(self) -> int:
        return self._partition.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._partition.log.end_offset

    @property
    def committed_offset(self) -> int:
        committed, unflushed = self._partition.high_watermark, self._unflushed_from
        return committed if unflushed is None else min(committed, unflushed)

    @property
    def entry_bytes_max(self) -> int:
        config = self._partition.log.config
        return min(config.max_message_bytes, config.segment_bytes)  # a batch must fit into a segment too

    @property
    def is_ours(self) -> bool:
        return self._partition.is_leader and self._partition.leader_epoch == self._leader_epoch

    @property
    def refusal(self) -> ErrorCode | None:
        return None if self._partition.has_enough_in_sync else ErrorCode.NOT_ENOUGH_REPLICAS

    def append(
        self, entries: Sequence[CoordinatorRecord], now_ms: int, producer: TransactionalProducer | None = None
    ) -> None:
        if not self.is_ours:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log, before = self._partition.log, self.end_offset
        self._append(entries, now_ms, producer)
        if log.must_flush:
            if self._unflushed_from is None:
                self._unflushed_from = before
            self._make_durable()

    def _append(
        self, entries: Sequence[CoordinatorRecord], now_ms: int, producer: TransactionalProducer | None
    ) -> None:
        kept = [Record(index, now_ms, key, value) for index, (key, value) in enumerate(entries)]
        if producer is None:
            self._partition.append_own(memoryview(build_batch(kept)), now_ms=now_ms)
            return
        batch = build_batch(
            kept,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            attributes=TRANSACTIONAL | (CONTROL if producer.ends else 0),
        )
        self._partition.append_own(
            memoryview(batch), now_ms=now_ms, verified=True, transaction_version=producer.transaction_version
        )

    def _make_durable(self) -> None:
        flushing = self._flush(self._partition.log)
        if flushing is not self._flushing:  # entries that wait for the same fsync need to hear of it once
            self._flushing = flushing
            flushing.add_done_callback(self._flushed)

    def _flushed(self, done: Future[None]) -> None:
        if done.cancelled() or done.exception() is not None:
            self.failure = ErrorCode.KAFKA_STORAGE_ERROR
        elif done is self._flushing:
            self._flushing = self._unflushed_from = None
        else:  # entries came after this fsync began, and wait for the next one
            self._unflushed_from = self._partition.log.recovery_point
        self._changed()

    def read(self, offset: int, bytes_max: int) -> Chunk:
        partition = self._partition
        end = partition.log.end_offset
        found = partition.read(Offset(offset), bytes_max=bytes_max, end=end, one_batch=True)
        view = memoryview(found.read() if len(found) else b"")
        found_batches = [
            (view[at : at + header.length_bytes], header) for at, header in batches(view, partial_tail=True)
        ]
        next_offset = found_batches[-1][1].next_offset if found_batches else offset
        if next_offset == offset:
            next_offset = end  # compaction took the last records of a segment
        return Chunk(chain.from_iterable(_stored(*each, offset) for each in found_batches), next_offset)

    def watch(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._partition.commit_watchers[self] = None

    def unwatch(self) -> None:
        self._partition.commit_watchers.pop(self, None)

    def grown(self, *_: object) -> None:
        self._changed()

    def disturbed(self) -> None:
        self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()


def _stored(batch: memoryview, header: BatchHeader, from_offset: int) -> Iterator[StoredRecord]:
    if header.is_control:
        marker = read_marker(batch)
        if marker is not None:
            yield StoredRecord(memoryview(b""), None, header.producer_id, marker)
        return
    producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
    for record in records(batch, decompressed_bytes_max=DECOMPRESSED_BATCH_BYTES_MAX):
        if record.offset >= from_offset and record.key is not None:
            value = None if record.value is None else memoryview(record.value)
            yield StoredRecord(memoryview(record.key), value, producer_id)
