"""Rewriting the segments of a compacted log, in a thread, and putting the new ones in place, on the event loop.

    round = Round(...)                       on the loop, from names and sizes of rolled segments, which never change
    round.build_map()                        in a thread
    for each group of old segments:
        cleaned = round.rewrite(group)       in a thread: makes files with the suffix .cleaned
        swap(log, group, cleaned, now_ms)    on the loop: .cleaned -> .swap, the old ones -> .deleted, .swap -> in place

A crash leaves .cleaned files, which are worth nothing, or .swap files, which are complete: opening a log removes the
former and finishes with the latter. Any fault ends a round, and leaves the log as it was. Between batches the thread
offers the interpreter to the event loop (`sleep(0)`), whose latency counts for more.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Sequence
from operator import is_
from typing import NamedTuple

from moldau.core.errors import ApiError
from moldau.log.compaction.batch_filter import BatchFilter, Rules
from moldau.log.compaction.cleaned_transactions import CleanedTransactions
from moldau.log.compaction.offset_map import OffsetMap
from moldau.log.compaction.throttle import Throttle
from moldau.log.failure import NotUndone
from moldau.log.files import (
    CLEANED,
    FILE_MODE,
    LOG,
    OFFSET_INDEX,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TRANSACTION_INDEX,
    offset_name,
    remove_if_there,
    sync_file,
    sync_path,
)
from moldau.log.indexes.offset_index import OffsetIndex
from moldau.log.indexes.time_index import TimeIndex
from moldau.log.indexes.transaction_index import AbortedTransaction, append_aborted
from moldau.log.partition_log import PartitionLog
from moldau.log.segment import Segment
from moldau.wire.batch import NO_TIMESTAMP, BatchHeader, CorruptBatch, batches, declared_bytes, payload, read_header
from moldau.wire.records import Buffer, spans

CHUNK_BYTES = 1 << 20
PAUSE_S_MAX = 0.1  # a pause is looked up from this often, for the broker may be stopping

LOGGER = logging.getLogger(__name__)


class Abandoned(Exception):
    """Nobody waits for the result any more."""


class Source(NamedTuple):
    """A rolled segment as it is on the disk."""

    path: str
    base_offset: int
    size: int


class Cleaned(NamedTuple):
    """A segment made of others, under names that end in `.cleaned`."""

    prefix: str
    base_offset: int
    size: int


def read_batches(source: Source) -> Iterator[tuple[memoryview, BatchHeader]]:
    """Every batch of a segment; reads let other threads run, which page faults of a mapped file would not."""
    fd = os.open(source.path, os.O_RDONLY | os.O_CLOEXEC)
    position, wanted = 0, CHUNK_BYTES
    try:
        while position < source.size:
            wanted = min(wanted, source.size - position)
            chunk = memoryview(os.pread(fd, wanted, position))
            if len(chunk) < wanted:
                raise CorruptBatch(f"{source.path} ends at byte {position + len(chunk)} instead of {source.size}")
            used = 0
            for at, header in batches(chunk, partial_tail=True):
                used = at + header.length_bytes
                yield chunk[at:used], header
            wanted = CHUNK_BYTES if used else _next_bytes(chunk, source, position)
            position += used
    finally:
        os.close(fd)


def _next_bytes(chunk: memoryview, source: Source, position: int) -> int:
    """How much to read for a batch that is larger than a chunk; one that is larger than the file is torn."""
    size = declared_bytes(chunk, 0) if len(chunk) > 12 else source.size
    if not len(chunk) < size <= source.size - position:
        raise CorruptBatch(f"{source.path}: the batch at byte {position} says it has {size} bytes")
    return size


class Round:
    """One pass over a log. Its methods run one after the other, though in different threads."""

    __slots__ = (
        "_aborted", "_first_dirty_offset", "_index_interval_bytes", "_is_abandoned", "_rules", "_sources",
        "_throttle", "_trail", "offsets",
    )  # fmt: skip

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        rules: Rules,
        first_dirty_offset: int,
        aborted: Sequence[AbortedTransaction],
        memory_bytes: int,
        index_interval_bytes: int,
        throttle: Throttle | None = None,
    ) -> None:
        self._throttle = throttle or Throttle()
        self._sources = sources
        self._rules = rules
        self._first_dirty_offset = first_dirty_offset
        self._aborted = aborted
        self._index_interval_bytes = index_interval_bytes
        self._trail = CleanedTransactions(aborted, start=sources[0].base_offset)
        self._is_abandoned = False
        self.offsets = OffsetMap(memory_bytes)

    @property
    def end_offset(self) -> int:
        """What the log is clean up to when this round is through."""
        return max(self.offsets.latest_offset + 1, self._first_dirty_offset)

    def abandon(self) -> None:
        """Let the thread that is at work end soon, with an `Abandoned` and without new files."""
        self._is_abandoned = True

    def _take_turns(self, count_bytes: int) -> None:
        """Called between batches, with the bytes that were read or written since."""
        left_s = self._throttle.pause_s(count_bytes)
        while left_s > 0 and not self._is_abandoned:
            time.sleep(min(left_s, PAUSE_S_MAX))
            left_s -= PAUSE_S_MAX
        if self._is_abandoned:
            raise Abandoned
        time.sleep(0)

    def build_map(self) -> None:
        """Read the dirty part until it ends or memory does."""
        trail = CleanedTransactions(self._aborted, start=self._first_dirty_offset)
        ends = [each.base_offset for each in self._sources[1:]]
        ends.append(self._rules.first_uncleanable_offset)
        for source, end in zip(self._sources, ends, strict=True):
            if end <= self._first_dirty_offset:
                continue
            if not self._map_segment(source, trail):
                return
            self.offsets.advance(end - 1)  # offsets after the last batch are gone for good

    def _map_segment(self, source: Source, trail: CleanedTransactions) -> bool:
        """False when the map has no room left. A batch is mapped whole or not at all, so that every round gets on."""
        for batch, header in read_batches(source):
            if header.last_offset < self._first_dirty_offset:
                continue
            if self.offsets.is_full:
                return False
            self._take_turns(len(batch))
            try:
                self._map_batch(batch, header, trail)
            except ApiError as fault:
                LOGGER.warning("%s: the batch at offset %d cannot be read: %s", source.path, header.base_offset, fault)
            self.offsets.advance(header.last_offset)
        return True

    def _map_batch(self, batch: memoryview, header: BatchHeader, trail: CleanedTransactions) -> None:
        offsets, start = self.offsets, self._first_dirty_offset
        body = payload(batch, header, decompressed_bytes_max=self._rules.unfolded_bytes_max)
        if header.is_control:
            trail.observe_marker(header, body)
            return
        if trail.observe(header):
            return
        for span in spans(body, header.record_count):
            offset = header.base_offset + span.offset_delta
            if span.key_size >= 0 and offset >= start:
                offsets.put(bytes(body[span.key_at : span.key_at + span.key_size]), offset)

    def rewrite(self, sources: Sequence[Source]) -> Cleaned:
        """One new segment of several neighbours, on the disk and synced. Groups come in offset order."""
        keep = BatchFilter(self._rules, self.offsets, self._trail)
        folder = os.path.dirname(sources[0].path)
        writer = SegmentWriter(folder, sources[0].base_offset, index_interval_bytes=self._index_interval_bytes)
        try:
            for source in sources:
                for batch, header in read_batches(source):
                    left = keep.apply(batch, header)
                    if left is not None:
                        writer.add(left)
                    self._take_turns(len(batch) + (len(left) if left is not None else 0))
            self._trail.kept, aborted = [], self._trail.kept
            return writer.finish(aborted, modified_ns=os.stat(sources[-1].path).st_mtime_ns)
        except BaseException:
            writer.discard()
            raise


class SegmentWriter:
    """A segment and its indexes under their `.cleaned` names."""

    __slots__ = (
        "_buffer", "_fd", "_index_interval_bytes", "_newest", "_newest_offset", "_offset_index", "_prefix", "_size",
        "_time_index", "_unindexed_bytes", "base_offset",
    )  # fmt: skip

    def __init__(self, folder: str, base_offset: int, *, index_interval_bytes: int) -> None:
        self._prefix = f"{folder}/{offset_name(base_offset)}"
        self.base_offset = base_offset
        self._index_interval_bytes = index_interval_bytes
        self._offset_index = OffsetIndex(self._prefix + OFFSET_INDEX + CLEANED, base_offset)
        self._time_index = TimeIndex(self._prefix + TIME_INDEX + CLEANED, base_offset)
        self._fd = -1
        self.discard()
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._fd = os.open(self._prefix + LOG + CLEANED, flags, FILE_MODE)
        self._offset_index.entries.reset()
        self._time_index.entries.reset()
        self._buffer = bytearray()
        self._size = self._unindexed_bytes = 0
        self._newest, self._newest_offset = NO_TIMESTAMP, base_offset

    def add(self, batch: Buffer) -> None:
        header = read_header(batch)
        if header.max_timestamp > self._newest:
            self._newest, self._newest_offset = header.max_timestamp, header.last_offset
        if self._unindexed_bytes > self._index_interval_bytes:
            self._offset_index.append(header.last_offset, self._size)
            self._time_index.append(self._newest, self._newest_offset)
            self._unindexed_bytes = 0
        self._unindexed_bytes += len(batch)
        self._size += len(batch)
        self._buffer += batch
        if len(self._buffer) >= CHUNK_BYTES:
            self._flush()

    def _flush(self) -> None:
        view = memoryview(self._buffer)
        while view:
            view = view[os.write(self._fd, view) :]
        self._buffer = bytearray()

    def finish(self, aborted: Sequence[AbortedTransaction], *, modified_ns: int) -> Cleaned:
        """Sync everything. The file keeps the age of the newest one it replaces, which retention may go by."""
        self._flush()
        sync_file(self._fd, self._prefix + LOG + CLEANED)
        os.close(self._fd)
        self._fd = -1
        if self._newest > NO_TIMESTAMP:
            self._time_index.append(self._newest, self._newest_offset)
        self._offset_index.entries.unload()
        self._time_index.entries.unload()
        for each in aborted:
            append_aborted(self._prefix + TRANSACTION_INDEX + CLEANED, each)
        for suffix in (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX):
            sync_path(self._prefix + suffix + CLEANED)
        os.utime(self._prefix + LOG + CLEANED, ns=(modified_ns, modified_ns))
        return Cleaned(self._prefix, self.base_offset, self._size)

    def discard(self) -> None:
        """Delete what is there of the files, from this attempt or one that a crash ended."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        for suffix in SEGMENT_SUFFIXES:
            remove_if_there(self._prefix + suffix + CLEANED)


def swap(log: PartitionLog, old: Sequence[Segment], cleaned: Cleaned, now_ms: int) -> bool:
    """Put a cleaned segment in the place of others. False when the log no longer has them; the new files go.

    What a deleted log held is under another name, and under its own there may be a new topic's folder.
    """
    present = [each for each in SEGMENT_SUFFIXES if os.path.exists(cleaned.prefix + each + CLEANED)]
    first = next((place for place, each in enumerate(log.segments) if each is old[0]), -1)
    same = first >= 0 and all(map(is_, log.segments[first : first + len(old)], old)) and LOG in present
    if log.is_deleted or not same or first + len(old) >= len(log.segments):
        discard(cleaned)
        return False
    with log.storage():
        _announce_swap(cleaned, present)
    with log.storage(whole=False):  # from here on only the next start could finish what fails half way
        _put_in_place(log, old, cleaned, present, now_ms)
    segment = Segment.existing(
        log.path, cleaned.base_offset, index_interval_bytes=log.config.index_interval_bytes, now_ms=now_ms
    )
    segment.keeper = log.active.keeper
    log.segments[first : first + len(old)] = [segment]
    return True


def discard(cleaned: Cleaned) -> None:
    """Remove a cleaned segment that is not put in place; what is left of it then is never swapped."""
    for suffix in SEGMENT_SUFFIXES:
        remove_if_there(cleaned.prefix + suffix + CLEANED)


def _announce_swap(cleaned: Cleaned, present: Sequence[str]) -> None:
    """Once no name ends in `.cleaned` the swap counts; until then a failure takes all of the new files away."""
    try:
        for suffix in present:
            os.replace(cleaned.prefix + suffix + CLEANED, cleaned.prefix + suffix + SWAP)
    except OSError as failure:
        try:
            for kind in (SWAP, CLEANED):  # in this order: what is left of `.swap` alone would count
                for suffix in present:
                    remove_if_there(cleaned.prefix + suffix + kind)
        except OSError:
            raise NotUndone.after(failure) from failure
        raise


def _put_in_place(
    log: PartitionLog, old: Sequence[Segment], cleaned: Cleaned, present: Sequence[str], now_ms: int
) -> None:
    due_ms = now_ms + log.config.file_delete_delay_ms
    for segment in old:
        segment.forget()
        for suffix in SEGMENT_SUFFIXES:
            log.removals.add(segment.prefix + suffix, due_ms)
    for suffix in present:
        os.replace(cleaned.prefix + suffix + SWAP, cleaned.prefix + suffix)
    _forget_snapshots(log, {each.base_offset for each in old[1:]}, due_ms)


def _forget_snapshots(log: PartitionLog, offsets: set[int], due_ms: int) -> None:
    """A producer snapshot belongs to the segment that begins where it was taken."""
    for offset in offsets.intersection(log.snapshot_offsets):
        log.removals.add(f"{log.path}/{offset_name(offset)}{SNAPSHOT}", due_ms)
        log.snapshot_offsets.remove(offset)
