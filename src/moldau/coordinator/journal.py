"""Where a coordinator keeps its facts: one partition of an internal topic, as the runtime wants to see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import Offset
from moldau.core.limits import DECOMPRESSED_BATCH_BYTES_MAX
from moldau.replication.partition import Partition
from moldau.wire.batch import Record, batches, build_batch, records

Entry: TypeAlias = tuple[bytes, bytes | None]


class Chunk(NamedTuple):
    """Some of a journal's records, and where the next ones begin."""

    records: Sequence[Record]
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

    def append(self, entries: Sequence[Entry], now_ms: int) -> None:
        """Write them as one batch. Raises ApiError, and then nothing was written."""
        ...

    def read(self, offset: int, bytes_max: int) -> Chunk: ...

    def watch(self, on_change: Callable[[], None]) -> None:
        """Call it when more is committed or the partition is lost."""
        ...

    def unwatch(self) -> None: ...


class PartitionJournal:
    """A journal in a partition that this broker leads, for as long as that epoch of its leadership lasts."""

    __slots__ = ("_leader_epoch", "_on_change", "_partition")

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
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
        return self._partition.high_watermark

    @property
    def entry_bytes_max(self) -> int:
        return self._partition.log.config.max_message_bytes

    @property
    def is_ours(self) -> bool:
        return self._partition.is_leader and self._partition.leader_epoch == self._leader_epoch

    def append(self, entries: Sequence[Entry], now_ms: int) -> None:
        if not self.is_ours:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        batch = build_batch([Record(index, now_ms, key, value) for index, (key, value) in enumerate(entries)])
        self._partition.append_own(memoryview(batch), now_ms=now_ms)

    def read(self, offset: int, bytes_max: int) -> Chunk:
        partition = self._partition
        found = partition.read(Offset(offset), bytes_max=bytes_max, end=partition.high_watermark, one_batch=True)
        view = memoryview(found.read() if len(found) else b"")
        kept: list[Record] = []
        next_offset = offset
        for at, header in batches(view, partial_tail=True):
            next_offset = header.next_offset
            if header.is_control:
                continue
            batch = view[at : at + header.length_bytes]
            kept += [
                record
                for record in records(batch, decompressed_bytes_max=DECOMPRESSED_BATCH_BYTES_MAX)
                if record.offset >= offset
            ]
        if next_offset == offset:
            next_offset = partition.high_watermark  # compaction took the last records of a segment
        return Chunk(kept, next_offset)

    def watch(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._partition.watchers.add(self)

    def unwatch(self) -> None:
        self._partition.watchers.discard(self)

    def grown(self, _: int) -> None:
        self._changed()

    def disturbed(self) -> None:
        self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()
