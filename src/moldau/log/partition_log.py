"""One partition's storage: segments in offset order, the last one written to, with what is remembered beside them.

One event loop owns a log and calls it from no other thread. Only `FlushPoint.sync` may run elsewhere.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path

import msgspec

from moldau.core.config.topic import TopicConfig
from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset, TopicId, TopicPartition
from moldau.log import timestamps
from moldau.log.appending.marker_append import append_marker
from moldau.log.appending.replicated import ANY_EPOCH, append_replicated
from moldau.log.appending.rolling import roll_at, take_snapshot
from moldau.log.appending.validation import Validated, Validator
from moldau.log.availability import Availability
from moldau.log.checkpoints import write_leader_epochs, write_partition_metadata
from moldau.log.errors import LogError
from moldau.log.file_range import EMPTY, FileRange
from moldau.log.files import TRANSACTION_INDEX
from moldau.log.flush_point import FlushPoint, paths_to_sync
from moldau.log.indexes.transaction_index import aborted_between
from moldau.log.leader_epochs import FILE_NAME as EPOCHS_FILE
from moldau.log.leader_epochs import EpochEnd, LeaderEpochs
from moldau.log.maintenance import recovery, truncation
from moldau.log.maintenance.removal import Removals
from moldau.log.producers.end_transaction_marker import read_marker
from moldau.log.producers.producer_state import Marker, Origin, ProducerStates
from moldau.log.segment import Segment
from moldau.log.timestamps import TimestampedOffset
from moldau.wire.batch import CONTROL, NO_TIMESTAMP, stamp

__all__ = ["EMPTY", "Appended", "FlushPoint", "PartitionLog", "TimestampedOffset"]

NO_SEGMENT_BYTES = -1
HINTS_MAX = 64  # readers at different places of the active segment that are found again without a search


class Appended(msgspec.Struct, frozen=True, gc=False):
    first_offset: Offset
    last_offset: Offset
    log_append_time_ms: int
    log_start_offset: Offset
    duplicate: bool = False


class PartitionLog(Availability):
    __slots__ = (
        "active", "clean_to", "config", "end_offset", "epochs", "epochs_dirty", "hints", "log_start_offset",
        "on_gone_back", "path", "producers", "recovery_point", "removals", "segments", "snapshot_offsets", "topic_id",
        "truncations", "validator",
    )  # fmt: skip

    def __init__(self, loaded: recovery.Loaded, *, partition: TopicPartition, topic_id: TopicId) -> None:
        super().__init__(partition)
        self.on_gone_back: Callable[[PartitionLog], None] | None = None
        self.path = loaded.path
        self.topic_id = topic_id
        self.segments: list[Segment] = loaded.segments
        self.active = loaded.segments[-1]
        self.log_start_offset = Offset(loaded.log_start_offset)
        self.end_offset = Offset(loaded.end_offset)
        self.recovery_point = Offset(loaded.recovery_point)
        self.clean_to: int | None = None  # how far it was compacted
        self.truncations = 0
        self.producers: ProducerStates = loaded.producers
        self.snapshot_offsets: list[int] = loaded.snapshot_offsets
        self.epochs: LeaderEpochs = loaded.epochs
        self.epochs_dirty = False
        self.hints: dict[int, int] = {}
        self.removals = Removals()
        self.update_config(loaded.config)

    @classmethod
    def create(
        cls, directory: Path | str, *, partition: TopicPartition, topic_id: TopicId, config: TopicConfig, now_ms: int
    ) -> PartitionLog:
        """A new log in a folder of its own. The topic's id is on the disk before any record can be."""
        path = str(directory)
        os.makedirs(path)
        write_partition_metadata(path, topic_id)
        segment = Segment.create(path, 0, index_interval_bytes=config.index_interval_bytes, now_ms=now_ms)
        loaded = recovery.Loaded(path, config, [segment], ProducerStates(str(partition)), LeaderEpochs())
        return cls(loaded, partition=partition, topic_id=topic_id)

    @classmethod
    def open(
        cls,
        directory: Path | str,
        *,
        partition: TopicPartition,
        topic_id: TopicId,
        config: TopicConfig,
        clean: bool,
        recovery_point: int,
        log_start_offset: int,
        now_ms: int,
        may_have_holes: bool = False,
    ) -> PartitionLog:
        """An existing log. After a clean stop nothing is scanned; else everything from the recovery point on is."""
        start = recovery.Start(str(partition), config, clean, recovery_point, log_start_offset, now_ms, may_have_holes)
        return cls(recovery.load(str(directory), start), partition=partition, topic_id=topic_id)

    @property
    def directory(self) -> Path:
        return Path(self.path)

    def segment_slot(self, offset: int) -> int:
        """The place of the segment that an offset falls in."""
        return max(0, bisect_right(self.segments, offset, key=lambda segment: segment.base_offset) - 1)

    def size_bytes(self) -> int:
        return sum([segment.size for segment in self.segments])

    @property
    def unflushed_records(self) -> int:
        return self.end_offset - self.recovery_point

    @property
    def must_flush(self) -> bool:
        """Whether `flush.messages` asks for an fsync now."""
        return self.end_offset - self.recovery_point >= self.config.flush_messages

    def update_config(self, config: TopicConfig) -> None:
        self.config = config
        self.validator = Validator(config, self.partition)
        self.active.index_interval_bytes = config.index_interval_bytes
        self.active.limit_age(config.segment_ms_max, config.segment_jitter_ms)

    def append_as_leader(
        self,
        records: memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        verified: bool = False,
        transaction_version: int = 0,
        checked: Validated | None = None,
    ) -> Appended:
        """Validate one batch, give it the next offsets and write it; a retried one gets its first offsets again.

        `verified` says that the coordinator knows of the transaction a transactional batch belongs to, and `checked` is
        what the validator made of the batch if it was asked before.
        """
        if self.offline is not None:
            raise self.refuse_offline()
        if checked is None:
            check = self.validator.validate if origin is Origin.CLIENT else self.validator.accept_own
            checked = check(records, now_ms)
        records, header = checked.records, checked.header
        offset = self.end_offset
        marker: Marker | None = None
        if header.producer_id >= 0:
            if header.attributes & CONTROL:
                marker = read_marker(records, transaction_version)
                assert marker is not None, "coordinators write no other control records"
                self.producers.check_marker(header, marker, offset=offset, origin=origin)
            elif known := self.producers.admit(header, offset=offset, origin=origin, verified=verified):
                first, last = Offset(known.first_offset), Offset(known.last_offset)
                return Appended(first, last, known.timestamp, self.log_start_offset, True)
        last_offset = Offset(offset + header.last_offset_delta)
        stamp(records, 0, offset, leader_epoch)
        # What may fail comes first and what only changes memory last; an epoch without records does no harm.
        try:
            if leader_epoch != self.epochs.latest:
                self.assign_epoch(leader_epoch, offset)
            if marker is not None:
                append_marker(self, records, header, marker, offset=offset, last_offset=last_offset, now_ms=now_ms)
            else:
                self.write(records, last_offset, header.max_timestamp, first_offset=offset, now_ms=now_ms)
        except LogError:
            self.producers.refuse(header)
            raise
        if marker is None and header.producer_id >= 0:
            self.producers.apply(header, first_offset=offset, last_offset=last_offset, timestamp=header.max_timestamp)
        return Appended(offset, last_offset, checked.log_append_time_ms, self.log_start_offset)

    def append_as_follower(self, records: memoryview, *, now_ms: int, leader_epoch: int = ANY_EPOCH) -> Appended:
        """Write a leader's batches with the offsets and epochs they have; a batch that is cut short is left out."""
        if self.offline is not None:
            raise self.refuse_offline()
        first_offset = append_replicated(self, records, leader_epoch=leader_epoch, now_ms=now_ms)
        return Appended(first_offset, Offset(self.end_offset - 1), NO_TIMESTAMP, self.log_start_offset)

    def write(
        self, batch: memoryview, last_offset: Offset, max_timestamp: int, *, first_offset: Offset, now_ms: int
    ) -> None:
        """Write one batch, in a new segment if the active one is full; nothing has changed when that fails."""
        segment, config, size = self.active, self.config, len(batch)
        if size > config.segment_bytes:
            raise LogError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"Message batch size is {size} bytes in append to partition {self.partition}, which exceeds the "
                f"maximum configured segment size of {config.segment_bytes}.",
            )
        try:
            if segment.is_full(size, last_offset, max_timestamp, config=config, now_ms=now_ms):
                segment = roll_at(self, first_offset, now_ms)
            segment.append(batch, size, last_offset=last_offset, max_timestamp=max_timestamp)
        except OSError as failure:
            raise self.fail(failure) from failure
        self.end_offset = self.producers.end_offset = Offset(last_offset + 1)

    def roll_if_full(
        self, batch: memoryview, last_offset: Offset, max_timestamp: int, *, first_offset: Offset, now_ms: int
    ) -> None:
        with self.storage():
            if self.active.is_full(len(batch), last_offset, max_timestamp, config=self.config, now_ms=now_ms):
                roll_at(self, first_offset, now_ms)

    def read(self, offset: Offset, *, bytes_max: int, end: Offset, one_batch: bool) -> FileRange:
        """From the batch that holds `offset` up to `bytes_max` bytes or the batch that holds `end`.

        The last batch may be cut. With `one_batch` the first one is whole, however large.
        """
        if self.offline is not None:
            raise self.refuse_offline()
        if not self.log_start_offset <= offset <= self.end_offset:
            self.check_range(offset)
        if offset >= end:
            return EMPTY
        try:
            return self._read(offset, bytes_max=bytes_max, end=end, one_batch=one_batch)
        except OSError as failure:
            raise self.fail(failure) from failure

    def _read(self, offset: Offset, *, bytes_max: int, end: Offset, one_batch: bool) -> FileRange:
        slot = len(self.segments) - 1
        if offset < self.active.base_offset:
            slot = self.segment_slot(offset)
        while slot < len(self.segments):
            segment = self.segments[slot]
            is_active = segment is self.active
            if (file := segment.file) is None:
                file = segment.wake() if is_active else segment.open_to_read()
            else:
                segment.is_used = True
            hint = self.hints.get(offset) if is_active else None
            if hint is None and offset <= segment.base_offset and segment.size:
                hint = 0
            first_bytes = NO_SEGMENT_BYTES
            if hint is None:
                place = segment.find(offset, file)
                if place is None:  # compaction removed the rest of this segment
                    slot += 1
                    continue
                hint, first_bytes = place.position, place.size
            is_whole = not is_active and self.segments[slot + 1].base_offset <= end
            limit = segment.size if is_whole else self._limit(segment, end)
            size = limit - hint
            if size > bytes_max:
                if first_bytes == NO_SEGMENT_BYTES:
                    first_bytes = segment.batch_bytes(file, hint)
                # Where no whole batch is due, a part of one is of no use to anybody.
                least = min(first_bytes, limit - hint) if one_batch else 0
                size = bytes_max if first_bytes <= bytes_max else least
            return FileRange(file.fd, hint, size, file, segment.extent) if size > 0 else EMPTY
        return EMPTY

    def _limit(self, segment: Segment, end: Offset) -> int:
        """The position in a segment where the batch that holds `end` begins."""
        if end >= self.end_offset:
            if segment is self.active:
                self._hint(self.end_offset, segment.size)
            return segment.size
        hint = self.hints.get(end) if segment is self.active else None
        if hint is not None:
            return hint
        place = segment.find(end, segment.open())
        if place is None:
            return segment.size
        if segment is self.active:
            self._hint(end, place.position)
        return place.position

    def _hint(self, offset: Offset, position: int) -> None:
        if len(self.hints) >= HINTS_MAX:
            self.hints.clear()
        self.hints[offset] = position

    def check_range(self, offset: Offset) -> None:
        """Refuse an offset that is neither in the log nor its end."""
        if not self.log_start_offset <= offset <= self.end_offset:
            raise LogError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {offset} for partition {self.partition}, but we only have log segments "
                f"from offset {self.log_start_offset} to {self.end_offset}.",
            )

    def roll(self, now_ms: int) -> Segment:
        """Begin a new segment at the log's end."""
        with self.storage():
            return roll_at(self, self.end_offset, now_ms)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Note where a leader's epoch begins. The file is synced with the next flush: until then recovery sees the
        epoch in the batches."""
        changed = self.epochs.copy()
        if changed.assign(epoch, start_offset):
            self.save_epochs(changed)

    def save_epochs(self, changed: LeaderEpochs) -> None:
        """Let them count once they are in the file."""
        with self.storage():
            write_leader_epochs(self.path, changed)
        self.epochs = changed
        self.epochs_dirty = True

    def epoch_end(self, leader_epoch: int) -> EpochEnd:
        return self.epochs.end_of(leader_epoch, self.end_offset)

    def epoch_of(self, offset: Offset) -> int:
        return self.epochs.epoch_of(offset)

    def flush_point(self, *, rolled_only: bool = False) -> FlushPoint:
        """What to sync to make everything safe so far, or with `rolled_only` everything but the active segment."""
        if self.offline is not None:
            raise self.refuse_offline()
        offset = Offset(self.active.base_offset) if rolled_only else self.end_offset
        paths = paths_to_sync(self.path, self.segments, recovery_point=self.recovery_point, rolled_only=rolled_only)
        if self.epochs_dirty:
            paths.append(f"{self.path}/{EPOCHS_FILE}")
            self.epochs_dirty = False
        return FlushPoint(offset, tuple(paths), self.truncations)

    def flushed(self, point: FlushPoint) -> None:
        """Everything before the point is on the disk, unless other records stand there since a truncation."""
        if point.truncations == self.truncations:
            self.recovery_point = max(self.recovery_point, point.offset)

    def flush_failed(self, failure: OSError) -> LogError:
        """A flush did not get through: if it was for lack of descriptors, the next one covers the same."""
        self.epochs_dirty = True
        return self.fail(failure)

    def flush(self) -> None:
        point = self.flush_point()
        try:
            point.sync()
        except OSError as failure:
            raise self.flush_failed(failure) from failure
        self.flushed(point)

    def close(self) -> None:
        """Stop cleanly: everything is on the disk, and the next start needs to scan nothing."""
        with self.storage():
            take_snapshot(self)
            self.active.close()
        if self.unflushed_records or self.epochs_dirty:
            self.flush()

    def rest(self) -> None:
        """Give back what an idle log does not need: a descriptor and the index in memory."""
        with self.storage():
            self.active.rest()

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampedOffset | None:
        """The first record that is not earlier than a time."""
        with self.storage():
            return timestamps.first_at_or_after(self.segments, timestamp_ms, start_offset=self.log_start_offset)

    def max_timestamp(self) -> TimestampedOffset | None:
        """The first record that has the largest timestamp of all."""
        with self.storage():
            return timestamps.latest(self.segments[self.segment_slot(self.log_start_offset) :])

    def truncate_to(self, offset: Offset, *, now_ms: int) -> bool:
        """Drop the batch that holds an offset and everything after it; False when there is nothing to drop."""
        with self.storage(whole=False):
            return truncation.truncate_to(self, offset, now_ms)

    def restart_at(self, offset: Offset, *, now_ms: int) -> None:
        """Empty the log and let it go on at an offset."""
        with self.storage(whole=False):
            truncation.restart_at(self, offset, now_ms)

    def advance_log_start(self, offset: Offset, *, now_ms: int = 0) -> None:
        """Begin at a later offset; segments that lie before it go. The caller keeps it below the high watermark."""
        with self.storage():
            truncation.advance_log_start(self, offset, now_ms)

    def delete_old_segments(self, now_ms: int, high_watermark: Offset) -> int:
        """Apply retention; gives the number of segments that went."""
        with self.storage():
            return truncation.delete_old_segments(self, now_ms, high_watermark)

    def aborted_transactions(self, start: Offset, end: Offset) -> list[tuple[int, int]]:
        """First offset and producer id of the aborted transactions with records in [start, end)."""
        with self.storage():
            segments = [segment for segment in self.segments[self.segment_slot(start) :] if segment.has_aborted()]
            found = aborted_between([segment.prefix + TRANSACTION_INDEX for segment in segments], start, end)
        return [(each.first_offset, each.producer_id) for each in found]
