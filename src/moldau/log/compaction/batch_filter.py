"""What compaction leaves of one batch: itself, a smaller one, its bare header, or nothing.

Offsets never change. A batch keeps its first and last offset, its producer and its sequences whatever records it loses,
so that a restart still knows what each producer sent last.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from moldau.core.errors import ApiError
from moldau.log.compaction.cleaned_transactions import CleanedTransactions
from moldau.log.compaction.offset_map import OffsetMap
from moldau.wire.batch import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    TIMESTAMP_MAX,
    TRANSACTIONAL,
    BatchHeader,
    CorruptBatch,
    InvalidRecord,
    encode_header,
    payload,
    verify_crc,
)
from moldau.wire.compression import compress
from moldau.wire.records import Buffer, Span, move_record, spans

LOGGER = logging.getLogger(__name__)


class LastSent(NamedTuple):
    """Of a producer that may go on: the last offset of its last data batch, -1 when only a marker is left of it."""

    last_offset: int
    epoch: int


class Rules(msgspec.Struct, frozen=True):
    """What one round of cleaning goes by."""

    now_ms: int
    delete_retention_ms: int
    first_uncleanable_offset: int
    unfolded_bytes_max: int
    last_sent: Mapping[int, LastSent]


class _Survivors(NamedTuple):
    spans: list[Span]
    has_tombstone: bool
    is_whole: bool


class BatchFilter:
    """Fed with every batch in offset order, since it follows transactions."""

    __slots__ = ("_offsets", "_rules", "_trail")

    def __init__(self, rules: Rules, offsets: OffsetMap, trail: CleanedTransactions) -> None:
        self._rules = rules
        self._offsets = offsets
        self._trail = trail

    def apply(self, batch: memoryview, header: BatchHeader) -> Buffer | None:
        """The bytes to keep. A batch that cannot be read is kept as it is: cleaning must not hide a fault."""
        try:
            if not verify_crc(batch, 0, header):
                raise CorruptBatch(f"stored crc = {header.crc}")
            body = payload(batch, header, decompressed_bytes_max=self._rules.unfolded_bytes_max)
            return self._apply(batch, header, body)
        except ApiError as fault:
            LOGGER.warning("the batch at offset %d is kept as it is: %s", header.base_offset, fault)
            return batch

    def _apply(self, batch: memoryview, header: BatchHeader, body: Buffer) -> Buffer | None:
        rules = self._rules
        horizon_ms = header.delete_horizon_ms
        if header.is_control:
            is_spent = self._trail.observe_marker(header, body)
            drop_all = is_spent and horizon_ms is not None and horizon_ms <= rules.now_ms
        else:
            is_spent = drop_all = self._trail.observe(header)
        keep_empty = self._is_last_of_producer(header) or header.next_offset == rules.first_uncleanable_offset
        if drop_all:
            return _bare(header) if keep_empty else None
        left = self._survivors(header, body)
        if not left.spans:
            return _bare(header) if keep_empty else None
        ages = horizon_ms is None and (left.has_tombstone or (is_spent and header.is_control))
        if left.is_whole and not ages:
            return batch
        return _rewrite(header, body, left.spans, rules.now_ms + rules.delete_retention_ms if ages else None)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        if header.producer_id < 0:
            return False
        last = self._rules.last_sent.get(header.producer_id)
        if last is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.epoch

    def _survivors(self, header: BatchHeader, body: Buffer) -> _Survivors:
        """Records beyond what the map covers stay; below it, those without a newer one of their key.

        A tombstone goes once readers have had time to see it. A record without a key cannot be compared, and goes.
        """
        kept: list[Span] = []
        offsets, base_offset, is_control = self._offsets, header.base_offset, header.is_control
        horizon_ms = header.delete_horizon_ms
        tombstones_stay = horizon_ms is None or self._rules.now_ms < horizon_ms
        has_tombstone = False
        for span in spans(body, header.record_count):
            offset = base_offset + span.offset_delta
            if not is_control and offset <= offsets.latest_offset:
                if span.key_size < 0 or not (span.value_size >= 0 or tombstones_stay):
                    continue
                if offset < offsets.get(bytes(body[span.key_at : span.key_at + span.key_size])):
                    continue
            kept.append(span)
            if span.value_size < 0:
                has_tombstone = True
        return _Survivors(kept, has_tombstone, len(kept) == header.record_count)


def _bare(header: BatchHeader) -> bytearray:
    """A batch without records, for the sake of its offsets and sequences."""
    flags = header.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL)
    return encode_header(
        msgspec.structs.replace(header, attributes=flags, base_timestamp=NO_TIMESTAMP, record_count=0), b""
    )


def _rewrite(header: BatchHeader, body: Buffer, kept: list[Span], horizon_ms: int | None) -> bytearray:
    """The same batch with fewer records. A new horizon takes the place of the base timestamp, so all deltas change."""
    out = bytearray()
    base_timestamp = header.base_timestamp if horizon_ms is None else horizon_ms
    shift = header.base_timestamp - base_timestamp
    for span in kept:
        if shift:
            move_record(out, body, span, offset_delta=span.offset_delta, timestamp_delta=span.timestamp_delta + shift)
        else:
            out += body[span.start : span.end]
    newest = header.max_timestamp
    if not header.is_log_append_time:
        newest = max(header.base_timestamp + span.timestamp_delta for span in kept)
        if newest > TIMESTAMP_MAX:
            raise InvalidRecord(f"Timestamp {newest} is beyond 64 bits")
    attributes = header.attributes if horizon_ms is None else header.attributes | DELETE_HORIZON
    replaced = msgspec.structs.replace(
        header,
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=newest,
        record_count=len(kept),
    )
    return encode_header(replaced, compress(header.attributes & CODEC_MASK, out))
