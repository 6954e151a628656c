"""Compacts one log at a time, the dirtiest first, and keeps how far each is clean.

The broker calls `clean_dirtiest` again and again, and rests (`log.cleaner.backoff.ms`) when there was nothing to do.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Sequence

from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import TopicId, TopicPartition
from moldau.core.limits import DECOMPRESSED_BATCH_BYTES_MAX
from moldau.log.checkpoints import CLEANER_OFFSETS, CorruptCheckpoint, read_offsets, write_offsets
from moldau.log.compaction.batch_filter import LastSent, Rules
from moldau.log.compaction.cleanable import Dirt, Extent, group, is_worthwhile, measure
from moldau.log.compaction.rewriting import Round, Source, swap
from moldau.log.compaction.throttle import Throttle
from moldau.log.files import TRANSACTION_INDEX, sync_path
from moldau.log.indexes.transaction_index import read_aborted
from moldau.log.partition_log import PartitionLog
from moldau.log.segment import Segment

LOGGER = logging.getLogger(__name__)


class Cleaner:
    """Used by one event loop. It works on one log at a time, so that its memory is bounded by one map of offsets."""

    __slots__ = ("_clean", "_loaded", "_throttle", "_uncleanable", "memory_bytes")

    def __init__(self, *, memory_bytes: int, throttle: Throttle | None = None) -> None:
        self.memory_bytes = memory_bytes
        self._throttle = throttle
        self._clean: dict[tuple[str, TopicPartition], tuple[TopicId, int]] = {}
        self._loaded: dict[
            str, dict[TopicPartition, int]
        ] = {}  # checkpoints of log directories, until a log claims its own
        self._uncleanable: set[tuple[TopicId, TopicPartition]] = set()

    def __len__(self) -> int:
        """Logs that are remembered, as clean up to an offset or as ones that can't be cleaned."""
        return len(self._clean) + len(self._uncleanable)

    async def clean_dirtiest(self, logs: Iterable[tuple[PartitionLog, int]], now_ms: int) -> PartitionLog | None:
        """Clean the log with the largest dirty share, if any is worth it. Each comes with its last stable offset.

        None when nothing was cleaned, be it for lack of dirt or for a fault: then it is time to rest. The cleaner and
        its checkpoint keep only logs that are among these, so that a deleted topic's does not outlive it.
        """
        found: list[tuple[float, int, PartitionLog, Dirt]] = []
        known = []
        for number, (log, last_stable_offset) in enumerate(logs):
            known.append(log)
            if not log.config.compact or len(log.segments) < 2 or (log.topic_id, log.partition) in self._uncleanable:
                continue
            try:
                dirt = self._measure(log, last_stable_offset, now_ms)
            except OSError as failure:
                log.fail(failure)
                continue
            if is_worthwhile(dirt, log.config):
                found.append((dirt.ratio, -number, log, dirt))
        self._forget_all_but(known)
        if not found:
            return None
        _, _, log, dirt = max(found)
        if not await self._clean_log(log, dirt, now_ms):
            return None
        folder = os.path.dirname(log.path)
        neighbours = [each for each in known if os.path.dirname(each.path) == folder]
        clean_to = {each.partition: self.first_dirty_offset(each) for each in neighbours}
        offsets = {partition: offset for partition, offset in clean_to.items() if offset is not None}
        try:
            await asyncio.to_thread(write_offsets, folder, CLEANER_OFFSETS, offsets)
        except OSError as failure:
            LOGGER.error("%s/%s could not be written: %s", folder, CLEANER_OFFSETS, failure.strerror)
            log.fail(failure)
        return log

    def first_dirty_offset(self, log: PartitionLog) -> int | None:
        """How far a log was cleaned; None when it never was, even if a deleted topic of its name was."""
        place = (os.path.dirname(log.path), log.partition)
        if place[0] not in self._loaded:
            self._loaded[place[0]] = _read(place[0])
        claimed = self._loaded[place[0]].pop(log.partition, None)
        if claimed is not None:
            self._clean.setdefault(place, (log.topic_id, claimed))
        topic_id, offset = self._clean.get(place, (log.topic_id, None))
        if topic_id != log.topic_id:
            del self._clean[place]
            return None
        return offset

    def truncated(self, log: PartitionLog) -> None:
        """A log lost its end: what comes there next is dirty."""
        clean_to = self.first_dirty_offset(log)
        if clean_to is not None and clean_to > log.end_offset:
            self._clean[os.path.dirname(log.path), log.partition] = (log.topic_id, log.end_offset)

    def _forget_all_but(self, logs: list[PartitionLog]) -> None:
        """Of deleted logs nothing stays, and what a checkpoint says of them is no namesake's."""
        for log in logs:
            self.first_dirty_offset(log)
        for unclaimed in self._loaded.values():
            unclaimed.clear()
        places = {(os.path.dirname(log.path), log.partition) for log in logs}
        self._clean = {place: clean for place, clean in self._clean.items() if place in places}
        self._uncleanable.intersection_update([(log.topic_id, log.partition) for log in logs])

    def _measure(self, log: PartitionLog, last_stable_offset: int, now_ms: int) -> Dirt:
        extent = Extent(log.log_start_offset, last_stable_offset, log.end_offset)
        return measure(
            log.segments, config=log.config, checkpoint=self.first_dirty_offset(log), extent=extent, now_ms=now_ms
        )

    async def _clean_log(self, log: PartitionLog, dirt: Dirt, now_ms: int) -> bool:
        try:
            end_offset = await clean_log(
                log, dirt, now_ms=now_ms, memory_bytes=self.memory_bytes, throttle=self._throttle
            )
        except FileNotFoundError:
            LOGGER.info("%s: segments were deleted while they were compacted", log.partition)
            return False
        except OSError as failure:
            LOGGER.error("%s could not be compacted, which is tried again: %s", log.partition, failure)
            log.fail(failure)
            return False
        except ApiError as fault:
            LOGGER.error("%s cannot be compacted and is left as it is: %s", log.partition, fault)
            if fault.code is not ErrorCode.KAFKA_STORAGE_ERROR:
                self._uncleanable.add((log.topic_id, log.partition))
            return False
        if end_offset is None or end_offset <= dirt.first_dirty_offset:
            return False
        self._clean[os.path.dirname(log.path), log.partition] = (log.topic_id, end_offset)
        return True


async def clean_log(
    log: PartitionLog, dirt: Dirt, *, now_ms: int, memory_bytes: int, throttle: Throttle | None = None
) -> int | None:
    """One round over a log; gives the offset that it is clean up to, None when it changed under our hands."""
    old = [each for each in log.segments[:-1] if each.base_offset < dirt.first_uncleanable_offset]
    size_before = sum(each.size for each in old)
    work = begin(log, old, dirt, now_ms=now_ms, memory_bytes=memory_bytes, throttle=throttle)
    try:
        await asyncio.to_thread(work.build_map)
        groups = group(
            old,
            end_offset=work.end_offset,
            segment_bytes=log.config.segment_bytes,
            first_uncleanable_offset=dirt.first_uncleanable_offset,
        )
        for segments in groups:
            if log.is_deleted:
                return None
            cleaned = await asyncio.to_thread(work.rewrite, [_source(each) for each in segments])
            if not swap(log, segments, cleaned, now_ms):
                return None
            await asyncio.to_thread(sync_path, log.path)
    except asyncio.CancelledError:
        work.abandon()  # the thread would go on for as long as the log is large, and hold up the broker's end
        raise
    size_after = sum(each.size for each in log.segments[:-1] if each.base_offset < dirt.first_uncleanable_offset)
    LOGGER.info(
        "%s: compacted up to offset %d, from %d to %d bytes", log.partition, work.end_offset, size_before, size_after
    )
    return work.end_offset


def begin(
    log: PartitionLog,
    old: Sequence[Segment],
    dirt: Dirt,
    *,
    now_ms: int,
    memory_bytes: int,
    throttle: Throttle | None = None,
) -> Round:
    """Everything a round needs to know of the log, which goes on meanwhile."""
    config = log.config
    rules = Rules(
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        first_uncleanable_offset=dirt.first_uncleanable_offset,
        unfolded_bytes_max=max(DECOMPRESSED_BATCH_BYTES_MAX, 4 * config.max_message_bytes),
        last_sent={
            producer_id: LastSent(producer.batches[-1].last_offset if producer.batches else -1, producer.epoch)
            for producer_id, producer in log.producers.producers.items()
        },
    )
    return Round(
        [_source(each) for each in old],
        rules=rules,
        first_dirty_offset=dirt.first_dirty_offset,
        aborted=[found for each in log.segments for found in read_aborted(each.prefix + TRANSACTION_INDEX)],
        memory_bytes=memory_bytes,
        index_interval_bytes=config.index_interval_bytes,
        throttle=throttle,
    )


def _source(segment: Segment) -> Source:
    return Source(segment.path, segment.base_offset, segment.size)


def _read(folder: str) -> dict[TopicPartition, int]:
    try:
        return read_offsets(folder, CLEANER_OFFSETS)
    except CorruptCheckpoint as wrong:
        LOGGER.warning("%s; every compacted log in it is taken as dirty", wrong)
        return {}
