"""What a follower checks of the batches its leader sent."""

from __future__ import annotations

from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.log.errors import LogError
from moldau.wire.batch import BatchHeader, CorruptBatch, batches, verify_crc


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
