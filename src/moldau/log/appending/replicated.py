"""What a follower checks of the batches its leader sent, and how it writes them.

The bytes are written as they came. Batches that follow each other in one segment are one write, whoever produced them;
only the marker that ends a transaction is written by itself, for the aborted transaction index comes before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset, TopicPartition
from moldau.log.appending.marker_append import append_marker
from moldau.log.appending.rolling import roll_at
from moldau.log.errors import LogError
from moldau.log.producers.end_transaction_marker import read_marker
from moldau.wire.batch import BatchHeader, CorruptBatch, batches, verify_crc

if TYPE_CHECKING:
    from moldau.log.partition_log import PartitionLog

ANY_EPOCH = 2**31 - 1


def append_replicated(log: PartitionLog, records: memoryview, *, leader_epoch: int, now_ms: int) -> Offset:
    """Write the whole batches, each of them whole or not at all; gives the first offset.

    After a failure the log's end tells how many of them there are.
    """
    found = check_replicated(records, log.partition, log.end_offset, leader_epoch=leader_epoch)
    first_offset = Offset(found[0][1].base_offset) if found else log.end_offset
    run = _Run(log, records, now_ms)
    for at, header in found:
        if header.leader_epoch > log.epochs.latest:
            run.write()
            log.assign_epoch(header.leader_epoch, header.base_offset)
        if header.is_control and header.producer_id >= 0:
            run.write()
            _append_control(log, records[at : at + header.length_bytes], header, now_ms)
        else:
            run.add(at, header)
    run.write()
    return first_offset


def _append_control(log: PartitionLog, batch: memoryview, header: BatchHeader, now_ms: int) -> None:
    first, last = Offset(header.base_offset), Offset(header.last_offset)
    marker = read_marker(batch)
    if marker is not None:
        append_marker(log, batch, header, marker, offset=first, last_offset=last, now_ms=now_ms)
    else:
        log.write(batch, last, header.max_timestamp, first_offset=first, now_ms=now_ms)


class _Run:
    """Batches that follow each other and belong in one segment, not written yet."""

    __slots__ = ("_headers", "_log", "_now_ms", "_records", "_size", "_start")

    def __init__(self, log: PartitionLog, records: memoryview, now_ms: int) -> None:
        self._log = log
        self._records = records
        self._now_ms = now_ms
        self._start = self._size = 0
        self._headers: list[BatchHeader] = []

    def add(self, at: int, header: BatchHeader) -> None:
        if self._headers and self._is_full(self._size + header.length_bytes, header):
            self.write()
        if not self._headers:
            self._start = at
        self._headers.append(header)
        self._size += header.length_bytes
        if self._log.active.size == 0:
            self.write()  # a segment's age counts from its first batch

    def _is_full(self, size: int, header: BatchHeader) -> bool:
        log, last_offset = self._log, header.last_offset
        return log.active.is_full(size, last_offset, header.max_timestamp, config=log.config, now_ms=self._now_ms)

    def write(self) -> None:
        """Unlike a leader a follower refuses no batch for its size: what the leader has is what there is."""
        if not self._headers:
            return
        log, headers = self._log, self._headers
        first, last = headers[0], headers[-1]
        with log.storage():
            if self._is_full(first.length_bytes, first):
                roll_at(log, Offset(first.base_offset), self._now_ms)
            log.active.append_all(self._records[self._start : self._start + self._size], headers)
        log.end_offset = log.producers.end_offset = Offset(last.next_offset)
        for header in headers:
            if header.producer_id >= 0:
                log.producers.apply(
                    header,
                    first_offset=header.base_offset,
                    last_offset=header.last_offset,
                    timestamp=header.max_timestamp,
                )
        self._headers, self._size = [], 0


def check_replicated(
    records: memoryview, partition: TopicPartition, end_offset: int, *, leader_epoch: int = ANY_EPOCH
) -> list[tuple[int, BatchHeader]]:
    """Places and headers of the whole batches, which must be sound and go on where the log ends, perhaps with gaps.

    A batch of a later epoch than the leader's own, and all behind it, are left out: they came with a leadership that
    this follower has not heard of, and with which it may have to truncate first.
    """
    found: list[tuple[int, BatchHeader]] = []
    for at, header in batches(records, partial_tail=True):
        if header.leader_epoch > leader_epoch:
            break
        if header.base_offset < end_offset:
            raise LogError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Unexpected offset in append to {partition}. First offset {header.base_offset} is less than the next "
                f"offset {end_offset}.",
            )
        if header.last_offset_delta < 0:
            raise CorruptBatch(f"A batch at offset {header.base_offset} of {partition} ends before it begins.")
        if not verify_crc(records, at, header):
            raise CorruptBatch(f"Record is corrupt (stored crc = {header.crc}) in topic partition {partition}.")
        end_offset = header.next_offset
        found.append((at, header))
    return found
