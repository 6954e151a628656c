"""What an answer to Fetch holds for a reader: records, without markers and without what was aborted."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from moldau.core.errors import ApiError, ProtocolViolation
from moldau.core.ids import TopicPartition
from moldau.wire.batch import BatchHeader, batches, records, verify_crc
from moldau.wire.messages.fetch import AbortedTransaction, PartitionData

DECOMPRESSED_BYTES_MAX = 1 << 30  # a batch of more is not what a producer made


class FetchedRecord(msgspec.Struct, frozen=True, gc=False):
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    """-1 for none."""
    is_append_time: bool
    leader_epoch: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]


def read_partition(place: TopicPartition, data: PartitionData, position: int) -> tuple[list[FetchedRecord], int]:
    """The records from `position` on, and the offset to go on at. ProtocolViolation or ApiError if they are damaged.

    What is whole before the damage is given out first: the next question begins with that.
    """
    view = memoryview(data.records or b"")
    aborted = Aborted(data.aborted_transactions or [])
    found: list[FetchedRecord] = []
    next_offset = position
    whole = 0
    try:
        for at, header in batches(view, partial_tail=True):
            if not verify_crc(view, at, header):
                raise ProtocolViolation(f"the checksum of the batch at offset {header.base_offset} is wrong")
            if aborted.hides(header):
                pass
            elif header.last_offset >= position:
                _append(found, place, header, view[at : at + header.length_bytes], position)
            next_offset, whole = max(next_offset, header.next_offset), len(found)
    except (ApiError, ProtocolViolation):
        if next_offset == position:
            raise
    return found[:whole], next_offset


def _append(
    found: list[FetchedRecord], place: TopicPartition, header: BatchHeader, batch: memoryview, position: int
) -> None:
    for each in records(batch, decompressed_bytes_max=DECOMPRESSED_BYTES_MAX):
        if each.offset < position:
            continue
        found.append(
            FetchedRecord(
                place.topic,
                place.partition,
                each.offset,
                each.timestamp,
                header.is_log_append_time,
                header.leader_epoch,
                _copied(each.key),
                _copied(each.value),
                tuple((bytes(name), _copied(value)) for name, value in each.headers),
            )
        )


def _copied(content: bytes | bytearray | memoryview | None) -> bytes | None:
    """Of its own, so that one record does not keep an answer of megabytes."""
    return None if content is None else bytes(content)


class Aborted:
    """Which batches of one answer belong to transactions that were aborted, or are no records at all."""

    def __init__(self, transactions: Sequence[AbortedTransaction]) -> None:
        self.coming = sorted(transactions, key=lambda each: each.first_offset, reverse=True)
        self.open: set[int] = set()

    def hides(self, header: BatchHeader) -> bool:
        while self.coming and self.coming[-1].first_offset <= header.last_offset:
            self.open.add(self.coming.pop().producer_id)
        if header.is_control:
            self.open.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self.open
