"""The producers of a partition as a file, so that a restart remembers them: Kafka's `.snapshot`, version 1."""

from __future__ import annotations

import contextlib
import logging
import struct

from moldau.core.ids import NO_OFFSET
from moldau.log.files import SNAPSHOT, offset_name, read_whole, remove_if_there, write_at
from moldau.log.producers.producer_state import ProducerStateEntry, ProducerStates, SentBatch
from moldau.wire.batch import SEQUENCE_MAX
from moldau.wire.crc import crc32c

LOGGER = logging.getLogger(__name__)

VERSION = 1
_PREFIX = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")


class CorruptSnapshot(Exception):
    """The file is damaged or of an unknown version; the log is replayed instead."""


def encode_snapshot(states: ProducerStates) -> bytes:
    entries = [_COUNT.pack(len(states.producers))]
    for producer_id, producer in states.producers.items():
        last = producer.batches[-1] if producer.batches else None
        entries.append(
            _ENTRY.pack(
                producer_id,
                producer.epoch,
                producer.last_sequence,
                last.last_offset if last else NO_OFFSET,
                last.last_offset - last.first_offset if last else 0,
                producer.last_timestamp,
                producer.coordinator_epoch,
                producer.transaction_start,
            )
        )
    body = b"".join(entries)
    return _PREFIX.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes, states: ProducerStates) -> None:
    """Fill empty states from a snapshot."""
    if len(data) < _PREFIX.size + _COUNT.size:
        raise CorruptSnapshot(f"{len(data)} bytes are too few")
    version, crc = _PREFIX.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshot(f"unknown version {version}")
    body = memoryview(data)[_PREFIX.size :]
    if crc32c(body) != crc:
        raise CorruptSnapshot("the checksum is wrong")
    (count,) = _COUNT.unpack_from(body)
    if count < 0 or len(body) < _COUNT.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{count} producers do not fit in {len(body)} bytes")
    for slot in range(count):
        _load(states, _ENTRY.unpack_from(body, _COUNT.size + slot * _ENTRY.size))
    states.ongoing = dict(sorted(states.ongoing.items()))


def _load(states: ProducerStates, entry: tuple[int, ...]) -> None:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, transaction_start = entry
    producer = states.producers[producer_id] = ProducerStateEntry()
    producer.epoch = epoch
    producer.coordinator_epoch = coordinator_epoch
    producer.last_timestamp = timestamp
    producer.transaction_start = transaction_start
    if last_offset >= 0:
        first_sequence = (last_sequence - delta) & SEQUENCE_MAX
        producer.batches.append(SentBatch(first_sequence, last_sequence, last_offset - delta, last_offset, timestamp))
    if transaction_start >= 0:
        states.ongoing[transaction_start] = producer_id


def write_snapshot(directory: str, states: ProducerStates) -> None:
    """A failure leaves no half of a file, or one whose checksum is wrong."""
    path = f"{directory}/{offset_name(states.end_offset)}{SNAPSHOT}"
    try:
        write_at(path, encode_snapshot(states), 0)
    except OSError:
        with contextlib.suppress(OSError):
            remove_if_there(path)
        raise


def load_latest(directory: str, offsets: list[int], states: ProducerStates) -> None:
    """Fill empty states from the latest sound snapshot. Damaged ones are deleted: the log itself makes them good."""
    while offsets:
        path = f"{directory}/{offset_name(offsets[-1])}{SNAPSHOT}"
        try:
            decode_snapshot(read_whole(path) or b"", states)
        except CorruptSnapshot as wrong:
            LOGGER.warning("%s: %s; deleting it", path, wrong)
            remove_if_there(path)
            offsets.pop()
            continue
        states.end_offset = offsets[-1]
        return
