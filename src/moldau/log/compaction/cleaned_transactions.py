"""Transactions along a log that is being compacted: which batches were aborted, and which markers nobody needs.

A marker must stay as long as a batch of its transaction does, or readers would take that for one still open.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.log.indexes.transaction_index import AbortedTransaction
from moldau.log.producers.end_transaction_marker import ABORT, COMMIT
from moldau.wire.batch import BatchHeader, InvalidRecord
from moldau.wire.records import Buffer, spans

_TYPE_AT = 2  # a control record's key is a version and a type, two bytes each
_KEY_BYTES = 4


class CleanedTransactions:
    """Fed with every batch in offset order. `kept` collects the aborted transactions that still have batches."""

    __slots__ = ("_aborted", "_committed", "_pending", "kept")

    def __init__(self, aborted: Iterable[AbortedTransaction], *, start: int) -> None:
        """Of all the aborted transactions of the log, those that were not over before the first batch to come."""
        ahead = [each for each in aborted if each.last_offset >= start]
        self._pending = sorted(ahead, key=lambda each: each.first_offset, reverse=True)
        self._aborted: dict[int, tuple[AbortedTransaction, bool]] = {}  # by producer; the flag: a batch of it was seen
        self._committed: set[int] = set()
        self.kept: list[AbortedTransaction] = []

    def observe(self, header: BatchHeader) -> bool:
        """Whether a data batch belongs to an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        begun = self._aborted.get(header.producer_id)
        if begun is None:
            self._committed.add(header.producer_id)
            return False
        self._aborted[header.producer_id] = (begun[0], True)
        return True

    def observe_marker(self, header: BatchHeader, payload: Buffer) -> bool:
        """Whether nothing of the transaction that this control batch ends is left."""
        self._begin_up_to(header.last_offset)
        kind = _marker_type(header, payload)
        if kind is None:
            return True  # cleaned before: only its header is left
        if kind == ABORT:
            begun = self._aborted.pop(header.producer_id, None)
            if begun is not None and begun[1]:
                self.kept.append(begun[0])
                return False
            return True
        if kind == COMMIT:
            had_batches = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
            return not had_batches
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._pending and self._pending[-1].first_offset <= offset:
            aborted = self._pending.pop()
            self._aborted.setdefault(aborted.producer_id, (aborted, False))


def _marker_type(header: BatchHeader, payload: Buffer) -> int | None:
    if header.record_count == 0:
        return None
    span = next(spans(payload, header.record_count))
    if span.key_size < _KEY_BYTES:
        raise InvalidRecord(f"Invalid value size found for control record key. Must have at least {_KEY_BYTES} bytes")
    return int.from_bytes(payload[span.key_at + _TYPE_AT : span.key_at + _KEY_BYTES], "big", signed=True)
