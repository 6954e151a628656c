"""How many records answers hold, and how many bytes of keys and values, without an object for each record.

As much is looked at as where records are read: checksums, what compression hides, each record's lengths.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.client.fetched import DECOMPRESSED_BYTES_MAX, Aborted
from moldau.core.errors import ProtocolViolation
from moldau.core.ids import TopicPartition
from moldau.wire.batch import BatchHeader, batches, payload, verify_crc
from moldau.wire.messages.fetch import AbortedTransaction, PartitionData
from moldau.wire.record_sizes import content_bytes
from moldau.wire.records import spans


@dataclass(frozen=True, slots=True)
class Batches:
    """Those of one answer about one partition, as they came, from a position on."""

    place: TopicPartition
    view: memoryview
    headers: list[tuple[int, BatchHeader]]
    position: int
    aborted: list[AbortedTransaction]


@dataclass(frozen=True, slots=True)
class Counted:
    records: int
    content_bytes: int
    next_offset: int


def find_batches(place: TopicPartition, data: PartitionData, position: int) -> tuple[Batches, int]:
    """Where they are, and the offset to go on at: what is in them may be read while the next answer is on its way."""
    view = memoryview(data.records or b"")
    headers = list(batches(view, partial_tail=True))
    following = max((header.next_offset for _, header in headers), default=position)
    return Batches(place, view, headers, position, data.aborted_transactions or []), max(position, following)


def count(found: Batches, *, records_max: int) -> Counted:
    """Of the first records, up to so many. ProtocolViolation or ApiError if they are damaged."""
    aborted = Aborted(found.aborted)
    records = content = 0
    position = found.position
    for at, header in found.headers:
        if records == records_max:
            break
        if not verify_crc(found.view, at, header):
            raise ProtocolViolation(f"{found.place}: the checksum of the batch at offset {header.base_offset} is wrong")
        if not aborted.hides(header) and header.last_offset >= position:
            batch = found.view[at : at + header.length_bytes]
            some = _count_batch(batch, header, position, records_max - records)
            records, content, position = records + some.records, content + some.content_bytes, some.next_offset
        position = position if records == records_max else max(position, header.next_offset)
    return Counted(records, content, position)


def _count_batch(batch: memoryview, header: BatchHeader, position: int, records_max: int) -> Counted:
    body = payload(batch, header, decompressed_bytes_max=DECOMPRESSED_BYTES_MAX)
    if position <= header.base_offset and header.record_count <= records_max:
        whole = bytes(body) if isinstance(body, memoryview) else body
        return Counted(header.record_count, content_bytes(whole, header.record_count), header.next_offset)
    records = content = 0
    for span in spans(body, header.record_count):
        offset = header.base_offset + span.offset_delta
        if offset >= position and records < records_max:
            records, content = records + 1, content + max(0, span.key_size) + max(0, span.value_size)
            position = offset + 1
    return Counted(records, content, position)
