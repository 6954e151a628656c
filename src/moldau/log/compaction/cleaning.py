"""One round of compaction over one log: threads read and rewrite what is sealed, the loop puts it in place."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from moldau.core.errors import ApiError
from moldau.core.limits import DECOMPRESSED_BATCH_BYTES_MAX
from moldau.log.compaction.batch_filter import LastSent, Rules
from moldau.log.compaction.cleanable import Dirt, group
from moldau.log.compaction.rewriting import Round, Source, discard, swap
from moldau.log.compaction.throttle import Throttle
from moldau.log.files import TRANSACTION_INDEX, sync_path
from moldau.log.indexes.transaction_index import read_aborted
from moldau.log.partition_log import PartitionLog
from moldau.log.segment import Segment

LOGGER = logging.getLogger(__name__)


async def clean_log(
    log: PartitionLog, dirt: Dirt, *, now_ms: int, memory_bytes: int, throttle: Throttle | None = None
) -> int | None:
    """One round over a log; gives the offset that it is clean up to, None when it changed under our hands."""
    old = [each for each in log.segments[:-1] if each.base_offset < dirt.first_uncleanable_offset]
    truncations = log.truncations
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
            if log.truncations != truncations:  # a segment that was cut may be full again, with other records
                discard(cleaned)
                return None
            if not swap(log, segments, cleaned, now_ms):
                return None
            await asyncio.to_thread(sync_path, log.path)
    except asyncio.CancelledError:
        work.abandon()  # the thread would go on for as long as the log is large, and hold up the broker's end
        raise
    except ApiError:
        if log.truncations == truncations:
            raise
    if log.truncations != truncations:
        return None
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
