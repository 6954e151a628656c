"""The producers of a partition, from a `.snapshot` file: read entry by entry, as many as they may be."""

from __future__ import annotations

import os
import struct
from typing import BinaryIO

from moldau.cli.kafka.dump_log.findings import Damaged
from moldau.wire.batch import SEQUENCE_MAX
from moldau.wire.crc import crc32c

VERSION = 1
_VERSION = struct.Struct(">h")
_PREFIX = struct.Struct(">hI")  # version, checksum of what follows
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
CHUNK_BYTES = 1 << 20


def dump_producers(path: str) -> None:
    with open(path, "rb") as file:
        count = _checked_count(file)
        for _ in range(count):
            print(_line(_ENTRY.unpack(file.read(_ENTRY.size))))


def _checked_count(file: BinaryIO) -> int:
    """How many entries follow, with the file standing before the first."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(_PREFIX.size)
    version = _VERSION.unpack_from(start)[0] if len(start) >= _VERSION.size else VERSION
    if version != VERSION:
        raise Damaged(
            f"Snapshot failed schema validation: Snapshot contained an unknown file version {version}: {file.name}"
        )
    counted = file.read(_COUNT.size)
    room = (size - file.tell()) // _ENTRY.size
    count = _COUNT.unpack(counted)[0] if len(counted) == _COUNT.size else -1
    if not 0 <= count <= room:
        raise Damaged(f"Snapshot failed schema validation: {count} producers in {size} bytes: {file.name}")
    computed = crc32c(counted)
    while data := file.read(CHUNK_BYTES):
        computed = crc32c(data, computed)
    stored = _PREFIX.unpack(start)[1]
    if computed != stored:
        raise Damaged(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}: {file.name}"
        )
    file.seek(_PREFIX.size + _COUNT.size)
    return count


def _line(entry: tuple[int, ...]) -> str:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, transaction_start = entry
    started = f"OptionalLong[{transaction_start}]" if transaction_start >= 0 else "OptionalLong.empty"
    known = (
        f"producerId: {producer_id} producerEpoch: {epoch} coordinatorEpoch: {coordinator_epoch}"
        f" currentTxnFirstOffset: {started} lastTimestamp: {timestamp}"
    )
    if last_offset < 0:
        return known
    first_sequence = (last_sequence - delta) & SEQUENCE_MAX
    return (
        f"{known} firstSequence: {first_sequence} lastSequence: {last_sequence} lastOffset: {last_offset}"
        f" offsetDelta: {delta} timestamp: {timestamp}"
    )
