"""One segment: a file of batches and its indexes, named after the first offset it may hold.

A segment rests or is awake. At rest it costs a few hundred bytes: no descriptor, no index in memory. The first append
wakes it. Only the active segment is ever awake; the others are opened for each read and closed when the read is done.
"""

from __future__ import annotations

import logging
import os
import struct
from collections.abc import Iterator, Sequence
from zlib import crc32

from moldau.core.config.topic import TopicConfig
from moldau.log.batch_search import BODY_BYTES_MIN, HOP, WINDOW_BYTES, BatchPosition, StaleIndex, first_reaching
from moldau.log.failure import NotUndone
from moldau.log.file_range import Extent
from moldau.log.files import (
    LOG,
    OFFSET_INDEX,
    TIME_INDEX,
    TRANSACTION_INDEX,
    OpenFile,
    offset_name,
    remove_if_there,
    size_of,
    write_all,
)
from moldau.log.indexes.offset_index import ENTRY as OFFSET_ENTRY
from moldau.log.indexes.offset_index import RELATIVE_OFFSET_MAX, OffsetIndex
from moldau.log.indexes.time_index import ENTRY as TIME_ENTRY
from moldau.log.indexes.time_index import Timed, TimeIndex
from moldau.log.open_files import OpenFiles
from moldau.wire.batch import NO_TIMESTAMP, OVERHEAD_BYTES, BatchHeader

LOGGER = logging.getLogger(__name__)

AGE_MS_MAX = 0x7FFFFFFFFFFFFFFF
UNKNOWN_TIMESTAMP = -2  # not read from the file yet; -1 is a segment without timestamps

_HOP_TIMED = struct.Struct(">qi11xi8xq")  # base offset, length, last offset delta, largest timestamp


class Segment:
    __slots__ = (
        "aborted", "age_ms_max", "awake", "base_offset", "created_ms", "extent", "file", "first_timestamp",
        "index_interval_bytes", "is_used", "keeper", "max_timestamp", "max_timestamp_offset", "offset_index", "prefix",
        "size", "time_index", "unindexed_bytes",
    )  # fmt: skip

    def __init__(
        self, directory: str, base_offset: int, *, size: int, index_interval_bytes: int, created_ms: int
    ) -> None:
        self.prefix = prefix = f"{directory}/{offset_name(base_offset)}"
        self.base_offset = base_offset
        self.size = size
        self.index_interval_bytes = index_interval_bytes
        self.created_ms = created_ms
        self.age_ms_max = AGE_MS_MAX
        self.aborted: bool | None = None
        self.offset_index = OffsetIndex(prefix + OFFSET_INDEX, base_offset)
        self.time_index = TimeIndex(prefix + TIME_INDEX, base_offset)
        self.file: OpenFile | None = None
        self.extent = Extent()
        self.awake = False
        self.keeper: OpenFiles | None = None
        self.is_used = False
        self.unindexed_bytes = 0
        self.first_timestamp = UNKNOWN_TIMESTAMP
        self.max_timestamp = UNKNOWN_TIMESTAMP
        self.max_timestamp_offset = base_offset

    @classmethod
    def create(cls, directory: str, base_offset: int, *, index_interval_bytes: int, now_ms: int) -> Segment:
        """A new, empty segment; what a crash may have left under its names goes.

        The log file comes last: while it is missing, the rest is of no meaning to a later start. One that was made
        although opening it failed would end the log at its base, while the segment before it is still written to.
        """
        segment = cls(directory, base_offset, size=0, index_interval_bytes=index_interval_bytes, created_ms=now_ms)
        remove_if_there(segment.prefix + TRANSACTION_INDEX)
        try:
            for suffix in (OFFSET_INDEX, TIME_INDEX, LOG):
                os.close(os.open(segment.prefix + suffix, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644))
        except OSError as failure:
            try:
                for suffix in (LOG, TIME_INDEX, OFFSET_INDEX):
                    remove_if_there(segment.prefix + suffix)
            except OSError:
                raise NotUndone.after(failure) from failure
            raise
        return segment

    @property
    def path(self) -> str:
        return self.prefix + LOG

    def move_to(self, directory: str) -> None:
        """The folder has another name."""
        self.prefix = f"{directory}/{offset_name(self.base_offset)}"
        self.offset_index.entries.path = self.prefix + OFFSET_INDEX
        self.time_index.entries.path = self.prefix + TIME_INDEX

    def open(self) -> OpenFile:
        """The file for reading, for once."""
        return self.file or OpenFile(self.path, os.O_RDONLY)

    def open_to_read(self) -> OpenFile:
        """The file for a reader that comes again: it stays open as long as the broker has descriptors to spare."""
        if self.keeper is None:
            return self.open()
        self.file = self.keeper.open(self, os.O_RDONLY)
        return self.file

    def wake(self) -> OpenFile:
        """Get ready to be appended to; awake only when everything was read."""
        file = OpenFile(self.path, os.O_RDWR) if self.keeper is None else self.keeper.open(self)
        # So short a segment has no entries, and its largest timestamp was read before: two files less to open.
        is_short = self.size <= self.index_interval_bytes and self.max_timestamp != UNKNOWN_TIMESTAMP
        self.offset_index.entries.load(is_empty=is_short or self.size == 0)
        self.time_index.entries.load(is_empty=is_short or self.size == 0)
        self.load_max_timestamp()
        self.awake = True
        self.file = file
        return file

    def rest(self) -> None:
        """Give back descriptor and memory; the next append wakes the segment again. It stays awake if it can't."""
        if self.awake:
            self.offset_index.entries.save()
            self.time_index.entries.save()
        self.forget()

    def seal(self) -> None:
        """Save the indexes with a last time entry, by which the largest timestamp is found without reading the log.

        A sealed segment may still be appended to, as happens when the one after it could not be made.
        """
        if self.max_timestamp > NO_TIMESTAMP:
            self.time_index.append_last(self.max_timestamp, self.max_timestamp_offset)
        if self.awake:
            self.offset_index.entries.save()
            self.time_index.entries.save()

    def close(self) -> None:
        self.seal()
        self.rest()

    def load_max_timestamp(self) -> Timed:
        """The largest timestamp so far and the last offset of the first batch that has it."""
        if self.max_timestamp == UNKNOWN_TIMESTAMP:
            self.max_timestamp, self.max_timestamp_offset = self.time_index.last()
        return Timed(self.max_timestamp, self.max_timestamp_offset)

    def append(self, data: memoryview | bytes, size: int, *, last_offset: int, max_timestamp: int) -> None:
        """Write one batch. When the write fails the segment is as it was before."""
        file = self.file
        if file is None or not self.awake:  # open for readers alone, it became the last segment by a truncation
            file = self.wake()
        else:
            self.is_used = True
        position = self.size
        try:
            count = os.pwrite(file.fd, data, position)
            if count != size:
                write_all(file.fd, memoryview(data)[count:], position + count)
        except OSError as failure:
            self._take_back(file.fd, position, failure)
            raise
        self.note(last_offset, max_timestamp, position=position, size=size)

    def append_all(self, data: memoryview, headers: Sequence[BatchHeader]) -> None:
        """Write several batches, all of them or none."""
        file = self.file
        if file is None or not self.awake:
            file = self.wake()
        self.is_used = True
        position = self.size
        try:
            write_all(file.fd, data, position)
        except OSError as failure:
            self._take_back(file.fd, position, failure)
            raise
        for header in headers:
            size = header.length_bytes
            self.note(header.last_offset, header.max_timestamp, position=position, size=size)
            position += size

    @staticmethod
    def _take_back(fd: int, position: int, failure: OSError) -> None:
        """Cut off what is there of a failed write: a clean start would take it for a part of the log."""
        try:
            os.ftruncate(fd, position)
        except OSError:
            raise NotUndone.after(failure) from failure

    def note(self, last_offset: int, max_timestamp: int, *, position: int, size: int) -> None:
        """Account for a batch that is in the file."""
        self.size = position + size
        if position == 0:
            self.first_timestamp = max_timestamp
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self.unindexed_bytes > self.index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
            self.unindexed_bytes = size
        else:
            self.unindexed_bytes += size

    def find(self, offset: int, file: OpenFile) -> BatchPosition | None:
        """The batch that holds an offset, or else the next one of this segment."""
        last_offset, position = self.offset_index.following(offset)
        if 0 <= position <= self.size - HOP.size:  # large batches are all indexed, so one short read is enough
            base_offset, body_bytes, delta = HOP.unpack(os.pread(file.fd, HOP.size, position))
            if base_offset <= offset and base_offset + delta == last_offset and body_bytes >= BODY_BYTES_MIN:
                return BatchPosition(position, body_bytes + OVERHEAD_BYTES, base_offset, last_offset)
        entry = self.offset_index.lookup(offset, remember=self.file is not None)
        try:
            return first_reaching(
                file.fd, offset, position=entry.position, end=self.size, indexed_offset=entry.last_offset
            )
        except StaleIndex:
            LOGGER.warning("%s: offset index is wrong at byte %d; rebuilding it", self.path, entry.position)
            self.reindex()
            return first_reaching(file.fd, offset, position=self.offset_index.lookup(offset).position, end=self.size)

    def next_offset(self) -> int:
        """The offset after the last batch, found from the last index entry."""
        if self.size == 0:
            return self.base_offset
        entry = self.offset_index.last()
        file = self.open()
        next_offset = self.base_offset
        for position, batch in self.hops(file, entry.position if entry.position < self.size else 0):
            if position == entry.position and entry.last_offset not in (-1, batch[0] + batch[2]):
                LOGGER.warning("%s: offset index is wrong at byte %d; rebuilding it", self.path, position)
                self.reindex()
                return self.next_offset()
            next_offset = batch[0] + batch[2] + 1
        return next_offset

    def hops(self, file: OpenFile, position: int = 0) -> Iterator[tuple[int, tuple[int, int, int, int]]]:
        """Positions of the batches from one on, each with base offset, length, last offset delta, largest timestamp."""
        window = b""
        at = 0
        end = self.size
        while position < end:
            if at + _HOP_TIMED.size > len(window):
                window = os.pread(file.fd, WINDOW_BYTES, position)
                at = 0
                if len(window) < _HOP_TIMED.size:
                    return
            batch = _HOP_TIMED.unpack_from(window, at)
            if batch[1] < BODY_BYTES_MIN or position + batch[1] + OVERHEAD_BYTES > end:
                return
            yield position, batch
            position += batch[1] + OVERHEAD_BYTES
            at += batch[1] + OVERHEAD_BYTES

    def reindex(self) -> None:
        """Rebuild both indexes from the headers, without checking any batch."""
        was_awake = self.awake
        size = self.size
        batches = self.hops(self.open())
        self.reset_indexes()
        for position, (base_offset, body_bytes, delta, timestamp) in batches:
            self.note(base_offset + delta, timestamp, position=position, size=body_bytes + OVERHEAD_BYTES)
        self.size = size
        if was_awake:
            self.offset_index.entries.save()
            self.time_index.entries.save()
        else:
            if self.max_timestamp > NO_TIMESTAMP:
                self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
            self.offset_index.entries.unload()
            self.time_index.entries.unload()

    def reset_indexes(self) -> None:
        self.offset_index.entries.reset()
        self.time_index.entries.reset()
        self.unindexed_bytes = 0
        self.max_timestamp, self.max_timestamp_offset = NO_TIMESTAMP, self.base_offset

    def forget(self) -> None:
        """Give everything back and save nothing, because the files go."""
        self.file = None
        self.awake = False
        self.offset_index.entries.forget()
        self.time_index.entries.forget()

    def truncate_to(self, offset: int) -> int:
        """Drop the batch that holds an offset and everything after it; gives the segment's new end."""
        file = self.file if self.awake and self.file else self.wake()
        place = self.find(offset, file)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        if place is not None:
            self.extent.cut(place.position)  # what was found there is not sent any more
            os.ftruncate(file.fd, place.position)
            self.size = place.position
        self.unindexed_bytes = 0
        self.first_timestamp = UNKNOWN_TIMESTAMP
        self.max_timestamp, self.max_timestamp_offset = self.time_index.last()
        start = self.offset_index.lookup(self.max_timestamp_offset).position
        for _, (base_offset, _, delta, timestamp) in self.hops(file, start):
            if timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = timestamp, base_offset + delta
        return offset if place is None else min(offset, place.base_offset)

    def load_first_timestamp(self) -> int:
        """The largest timestamp of the first batch, from which the segment's age is counted."""
        if self.first_timestamp == UNKNOWN_TIMESTAMP and self.size > 0:
            file = self.open()
            header = os.pread(file.fd, _HOP_TIMED.size, 0)
            self.first_timestamp = _HOP_TIMED.unpack(header)[3] if len(header) == _HOP_TIMED.size else NO_TIMESTAMP
        return self.first_timestamp

    def is_full(self, size: int, last_offset: int, max_timestamp: int, *, config: TopicConfig, now_ms: int) -> bool:
        """Whether a batch belongs in a new segment, by size, age, index or the reach of relative offsets."""
        if last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            return True
        if self.size == 0:
            return False
        if self.size > config.segment_bytes - size:
            return True
        first = self.first_timestamp
        if first == UNKNOWN_TIMESTAMP:
            first = self.load_first_timestamp()
        age_ms = max_timestamp - first if first >= 0 else now_ms - self.created_ms
        if age_ms > self.age_ms_max:
            return True
        # The time index is the first to be full, and never has more entries than the offset index.
        known, index_bytes_max = self.offset_index.entries.first, config.segment_index_bytes
        may_be_full = known is None or len(known) >= index_bytes_max // TIME_ENTRY.size - 1
        return may_be_full and self.indexes_full(index_bytes_max)

    def limit_age(self, age_ms_max: int, jitter_ms_max: int) -> None:
        """Segments of many partitions created together should not all roll together; the name is random enough."""
        jitter_ms = min(jitter_ms_max, age_ms_max)
        self.age_ms_max = age_ms_max - (crc32(self.prefix.encode()) % jitter_ms if jitter_ms > 0 else 0)

    def batch_bytes(self, file: OpenFile, position: int) -> int:
        """The size of the batch at a position."""
        return int.from_bytes(os.pread(file.fd, 4, position + 8), "big") + OVERHEAD_BYTES

    def indexes_full(self, index_bytes_max: int) -> bool:
        """The time index keeps one entry free for the one that closes it."""
        return (
            len(self.offset_index.entries) >= index_bytes_max // OFFSET_ENTRY.size
            or len(self.time_index.entries) >= index_bytes_max // TIME_ENTRY.size - 1
        )

    def modified_ms(self) -> int:
        try:
            return os.stat(self.path).st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return self.created_ms

    def largest_timestamp(self) -> int:
        """What retention counts from: the largest timestamp, or the time of the last write when there is none."""
        timestamp = self.load_max_timestamp().timestamp
        return timestamp if timestamp >= 0 else self.modified_ms()

    def has_aborted(self) -> bool:
        """Whether any transaction was aborted here; few logs have one, so the answer is kept."""
        if self.aborted is None:
            self.aborted = size_of(self.prefix + TRANSACTION_INDEX) > 0
        return self.aborted

    def index_fault(self) -> str | None:
        """What is wrong with an index file, or None."""
        if fault := self.offset_index.fault(self.size):
            return f"{self.offset_index.entries.path} {fault}"
        if fault := self.time_index.fault():
            return f"{self.time_index.entries.path} {fault}"
        return None

    @classmethod
    def existing(cls, directory: str, base_offset: int, *, index_interval_bytes: int, now_ms: int) -> Segment:
        size = size_of(f"{directory}/{offset_name(base_offset)}{LOG}")
        return cls(directory, base_offset, size=size, index_interval_bytes=index_interval_bytes, created_ms=now_ms)
