"""Compacts one log at a time, the dirtiest first, and writes down how far each is clean.

The broker calls `clean_dirtiest` again and again, and rests (`log.cleaner.backoff.ms`) when there was nothing to do.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from threading import Lock

from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import TopicId, TopicPartition
from moldau.log.checkpoints import CLEANER_OFFSETS
from moldau.log.compaction.cleanable import Dirt, Extent, is_worthwhile, measure
from moldau.log.compaction.throttle import Throttle
from moldau.log.directories.offset_checkpoints import Checkpoints
from moldau.log.partition_log import PartitionLog

LOGGER = logging.getLogger(__name__)


class Cleaner:
    """Used by one event loop. It works on one log at a time, so that its memory is bounded by one map of offsets."""

    __slots__ = ("_checkpointing", "_throttle", "_uncleanable", "memory_bytes")

    def __init__(
        self, *, memory_bytes: int, throttle: Throttle | None = None, checkpointing: Lock | None = None
    ) -> None:
        """`checkpointing` is held by who writes the checkpoints of log directories."""
        self.memory_bytes = memory_bytes
        self._throttle = throttle
        self._checkpointing = checkpointing or Lock()
        self._uncleanable: set[tuple[TopicId, TopicPartition]] = set()

    def __len__(self) -> int:
        """Logs that are remembered as ones that can't be cleaned."""
        return len(self._uncleanable)

    async def clean_dirtiest(self, logs: Iterable[tuple[PartitionLog, int]], now_ms: int) -> PartitionLog | None:
        """Clean the log with the largest dirty share, if any is worth it. Each comes with its last stable offset.

        None when nothing was cleaned, be it for lack of dirt or for a fault: then it is time to rest. The checkpoint
        keeps only logs that are among these, so that a deleted topic's does not outlive it.
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
        self._uncleanable.intersection_update([(each.topic_id, each.partition) for each in known])
        if not found:
            return None
        _, _, log, dirt = max(found)
        if not await self._clean_log(log, dirt, now_ms):
            return None
        folder = os.path.dirname(log.path)
        neighbours = [each for each in known if os.path.dirname(each.path) == folder]
        try:
            await asyncio.to_thread(Checkpoints.of_clean_logs(folder, neighbours, self._checkpointing).write)
        except OSError as failure:
            LOGGER.error("%s/%s could not be written: %s", folder, CLEANER_OFFSETS, failure.strerror)
            log.fail(failure)
        return log

    def _measure(self, log: PartitionLog, last_stable_offset: int, now_ms: int) -> Dirt:
        extent = Extent(log.log_start_offset, last_stable_offset, log.end_offset)
        return measure(log.segments, config=log.config, checkpoint=log.clean_to, extent=extent, now_ms=now_ms)

    async def _clean_log(self, log: PartitionLog, dirt: Dirt, now_ms: int) -> bool:
        from moldau.log.compaction.cleaning import clean_log  # loaded when there is something to clean

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
        log.clean_to = end_offset
        return True
