"""Writing the marker that ends a transaction: its entry in the aborted transaction index comes first.

Once a marker is in the log, readers of committed records go past it. They must find the entry of an aborted transaction
then, or they would take its records for committed ones; so a marker whose entry can't be written is not written either,
and the entry of a marker that can't be written is taken back.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from moldau.core.ids import Offset
from moldau.log.errors import LogError
from moldau.log.files import TRANSACTION_INDEX
from moldau.log.indexes.transaction_index import AbortedTransaction, append_aborted, cut
from moldau.log.producers.producer_state import CompletedTransaction, Marker
from moldau.wire.batch import BatchHeader

if TYPE_CHECKING:
    from moldau.log.partition_log import PartitionLog


def append_marker(
    log: PartitionLog,
    batch: memoryview,
    header: BatchHeader,
    marker: Marker,
    *,
    offset: Offset,
    last_offset: Offset,
    now_ms: int,
) -> None:
    """Write a marker, its index entry and what the log knows of its producer, or nothing of all that."""
    producers = log.producers
    completed = producers.completed_by(header, marker, offset=last_offset)
    if completed is None or not completed.is_aborted:
        log.write(batch, last_offset, header.max_timestamp, first_offset=offset, now_ms=now_ms)
    else:
        log.roll_if_full(batch, last_offset, header.max_timestamp, first_offset=offset, now_ms=now_ms)
        _write_aborted(log, completed, batch, header, now_ms)
    producers.apply_marker(header, marker, offset=last_offset, timestamp=header.max_timestamp)
    if completed is not None:
        producers.complete(completed)


def _write_aborted(
    log: PartitionLog, completed: CompletedTransaction, batch: memoryview, header: BatchHeader, now_ms: int
) -> None:
    entry = AbortedTransaction.of(completed, log.producers.stable_after(completed))
    path = log.active.prefix + TRANSACTION_INDEX
    last_offset = Offset(completed.last_offset)
    with log.storage():
        size = append_aborted(path, entry)
    try:
        first_offset = Offset(last_offset - header.last_offset_delta)
        log.write(batch, last_offset, header.max_timestamp, first_offset=first_offset, now_ms=now_ms)
    except LogError as refused:
        failure = refused.__cause__ if isinstance(refused.__cause__, OSError) else OSError(errno.EIO, str(refused))
        with log.storage():
            cut(path, size, failure)
        raise
    log.active.aborted = True
