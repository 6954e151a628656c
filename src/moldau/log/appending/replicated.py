"""What a follower checks of the batches its leader sent, and how it writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset, TopicPartition
from moldau.log.appending.marker_append import append_marker
from moldau.log.errors import LogError
from moldau.log.producers.end_transaction_marker import read_marker
from moldau.wire.batch import BatchHeader, CorruptBatch, batches, verify_crc

if TYPE_CHECKING:
    from moldau.log.partition_log import PartitionLog


def append_replicated(log: PartitionLog, records: memoryview, now_ms: int) -> Offset:
    """Write the whole batches, each of them whole or not at all; gives the first offset.

    After a failure the log's end tells how many of them there are.
    """
    found = check_replicated(records, log.partition, log.end_offset)
    first_offset = Offset(found[0][1].base_offset) if found else log.end_offset
    for batch, header in found:
        first, last, timestamp = Offset(header.base_offset), Offset(header.last_offset), header.max_timestamp
        if header.leader_epoch > log.epochs.latest:
            log.assign_epoch(header.leader_epoch, first)
        marker = read_marker(batch) if header.is_control and header.producer_id >= 0 else None
        if marker is not None:
            append_marker(log, batch, header, marker, offset=first, last_offset=last, now_ms=now_ms)
            continue
        log.write(batch, last, timestamp, first_offset=first, now_ms=now_ms)
        if header.producer_id >= 0 and not header.is_control:
            log.producers.apply(header, first_offset=first, last_offset=last, timestamp=timestamp)
    return first_offset


def check_replicated(
    records: memoryview, partition: TopicPartition, end_offset: int
) -> list[tuple[memoryview, BatchHeader]]:
    """The whole batches, which must be sound and go on where the log ends, perhaps with gaps."""
    found: list[tuple[memoryview, BatchHeader]] = []
    for at, header in batches(records, partial_tail=True):
        if header.base_offset < end_offset:
            raise LogError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Unexpected offset in append to {partition}. First offset {header.base_offset} is less than the next "
                f"offset {end_offset}.",
            )
        if not verify_crc(records, at, header):
            raise CorruptBatch(f"Record is corrupt (stored crc = {header.crc}) in topic partition {partition}.")
        end_offset = header.next_offset
        found.append((records[at : at + header.length_bytes], header))
    return found
