"""Batches of an answer to Fetch that a reader may see."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.core.errors import ApiError
from moldau.wire.batch import BatchHeader, batches, records
from moldau.wire.messages.fetch import PartitionData
from moldau.wire.records import Record

DECOMPRESSED_BYTES_MAX = 1 << 28


def visible_batches(data: PartitionData) -> Iterator[tuple[BatchHeader, memoryview, bool]]:
    """Each whole batch, and whether it holds records that count: no markers, nothing of aborted transactions."""
    view = memoryview(data.records or b"")
    aborted = sorted((each.first_offset, each.producer_id) for each in data.aborted_transactions or [])
    under_way: set[int] = set()
    for at, header in batches(view, partial_tail=True):
        while aborted and aborted[0][0] <= header.last_offset:
            under_way.add(aborted.pop(0)[1])
        is_void = header.is_transactional and header.producer_id in under_way
        if header.is_control:
            under_way.discard(header.producer_id)
        yield header, view[at : at + header.length_bytes], not (is_void or header.is_control)


def records_from(data: PartitionData, offset: int) -> Iterator[Record]:
    """A damaged batch has none."""
    for header, batch, counts in visible_batches(data):
        if not counts or header.last_offset < offset:
            continue
        try:
            for record in records(batch, decompressed_bytes_max=DECOMPRESSED_BYTES_MAX):
                if record.offset >= offset:
                    yield record
        except ApiError:
            continue


def next_offset(data: PartitionData) -> int | None:
    """Behind the last whole batch; None if there is none."""
    found = None
    for header, _, _ in visible_batches(data):
        found = header.next_offset
    return found
