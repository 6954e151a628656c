"""Record batches, version 2: the unit that producers send, the log stores and consumers fetch.

The broker treats a batch as opaque: header and checksum are all it looks at, unless validation or compaction must open
it. Message sets of magic 0 and 1, which Kafka 4 writes no longer, are recognised and refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

import msgspec

from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import ProducerId
from moldau.wire.compression import Codec, compress, decompress
from moldau.wire.crc import crc32c
from moldau.wire.records import Buffer, InvalidRecord, Record, encode_records, read_headers, spans

__all__ = [
    "HEADER_BYTES", "MAGIC", "NO_PRODUCER_ID", "NO_TIMESTAMP", "BatchHeader", "Codec", "CorruptBatch", "InvalidRecord",
    "Record", "batches", "build_batch", "encode_header", "payload", "read_header", "records", "stamp", "verify_crc",
]  # fmt: skip

MAGIC = 2
OVERHEAD_BYTES = 12  # base offset and length, which the length itself does not count
HEADER_BYTES = 61
MAGIC_AT = 16  # the one field that has the same place in every version
CRC_AT = 17
ATTRIBUTES_AT = 21  # the checksum covers everything from here
NO_PRODUCER_ID = ProducerId(-1)
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
EPOCH_MAX = 0x7FFF  # of a producer, in 16 bits
SEQUENCE_MAX = 0x7FFFFFFF
TIMESTAMP_MAX = 0x7FFFFFFFFFFFFFFF

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

_HEADER = struct.Struct(">qiibIhiqqqhii")
_unpack_header = _HEADER.unpack_from
_unpack_length = struct.Struct(">i").unpack_from
_pack_offset = struct.Struct(">q").pack_into
_pack_epoch = struct.Struct(">i").pack_into
_pack_crc = struct.Struct(">I").pack_into


class CorruptBatch(ApiError):
    """Bytes that are not a batch, or no longer the batch that was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)


class BatchHeader(msgspec.Struct, frozen=True, gc=False):
    """The 61 bytes before the records, in their order on the wire."""

    base_offset: int
    body_bytes: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def length_bytes(self) -> int:
        """The whole batch, header included."""
        return self.body_bytes + OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequences wrap from 2^31-1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & SEQUENCE_MAX

    @property
    def codec(self) -> int:
        """A `Codec`, unless the producer made one up."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME != 0

    @property
    def timestamp_type(self) -> int:
        """0 CreateTime, 1 LogAppendTime, as the protocol numbers them."""
        return self.attributes >> 3 & 1

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers of a compacted batch may go; it replaces the base timestamp."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None


def read_header(view: Buffer, at: int = 0) -> BatchHeader:
    """The header at this position; its fields are not checked against each other or the bytes that follow."""
    try:
        return BatchHeader(*_unpack_header(view, at))
    except struct.error:
        check_magic(view, at)
        raise CorruptBatch(
            f"Record batch is corrupt (the size {len(view) - at} is smaller than the minimum allowed overhead "
            f"{HEADER_BYTES})"
        ) from None


def check_magic(view: Buffer, at: int) -> None:
    """Say clearly that a message set of an old version is one, since it may well be shorter than a header."""
    if at + MAGIC_AT < len(view) and view[at + MAGIC_AT] != MAGIC:
        check_magic_known(view, at)
        raise InvalidRecord(f"Message format version {view[at + MAGIC_AT]} is not supported; only version {MAGIC} is")


def check_magic_known(view: Buffer, at: int) -> None:
    """Refuse a version that there never was."""
    magic = view[at + MAGIC_AT]
    if magic > MAGIC:
        raise CorruptBatch(f"Invalid magic found in record: {magic - 256 if magic > 127 else magic}")


def verify_crc(view: memoryview, at: int, header: BatchHeader) -> bool:
    return crc32c(view[at + ATTRIBUTES_AT : at + OVERHEAD_BYTES + header.body_bytes]) == header.crc


def stamp(view: memoryview | bytearray, at: int, base_offset: int, leader_epoch: int) -> None:
    """Give a batch its place in the log, in place: the checksum covers neither field."""
    _pack_offset(view, at, base_offset)
    _pack_epoch(view, at + OVERHEAD_BYTES, leader_epoch)


def batches(view: Buffer, at: int = 0, *, partial_tail: bool = False) -> Iterator[tuple[int, BatchHeader]]:
    """Positions and headers of the batches that fill a buffer; only magic and lengths are checked.

    With `partial_tail` a last batch that was cut short, as a size limit cuts it, ends the iteration instead.
    """
    size = len(view)
    while at < size:
        if partial_tail and (size - at < OVERHEAD_BYTES + 5 or size - at < declared_bytes(view, at)):
            return
        header = read_header(view, at)
        if header.magic != MAGIC:
            check_magic(view, at)
        end = at + OVERHEAD_BYTES + header.body_bytes
        if not at + HEADER_BYTES <= end <= size:
            raise CorruptBatch(
                f"Record batch at byte {at} declares {header.length_bytes} bytes; allowed {HEADER_BYTES}..{size - at}"
            )
        yield at, header
        at = end


def declared_bytes(view: Buffer, at: int) -> int:
    """How long the batch at this position says it is, which may be a lie; 12 bytes must be there."""
    length: int = _unpack_length(view, at + 8)[0]
    return length + OVERHEAD_BYTES


def payload(view: memoryview, header: BatchHeader, *, decompressed_bytes_max: int) -> Buffer:
    """The records of one batch, decompressed if need be."""
    body = view[HEADER_BYTES : header.length_bytes]
    codec = header.attributes & CODEC_MASK
    return body if codec == Codec.NONE else decompress(codec, body, bytes_max=decompressed_bytes_max)


def records(batch: memoryview, *, decompressed_bytes_max: int) -> Iterator[Record]:
    """The records of one batch, each with its own offset and timestamp; lies end in `InvalidRecord`."""
    header = read_header(batch)
    if header.record_count < 0:
        raise InvalidRecord(f"Found invalid record count {header.record_count} in magic v{header.magic} batch")
    body = payload(batch, header, decompressed_bytes_max=decompressed_bytes_max)
    append_time = header.max_timestamp if header.is_log_append_time else None
    for span in spans(body, header.record_count):
        yield Record(
            offset=header.base_offset + span.offset_delta,
            timestamp=header.base_timestamp + span.timestamp_delta if append_time is None else append_time,
            key=body[span.key_at : span.key_at + span.key_size] if span.key_size >= 0 else None,
            value=body[span.value_at : span.value_at + span.value_size] if span.value_size >= 0 else None,
            headers=read_headers(body, span) if span.header_count else (),
        )


def encode_header(header: BatchHeader, body: Buffer) -> bytearray:
    """A whole batch of this header and these (compressed) records; length and checksum are made to fit."""
    batch = bytearray(HEADER_BYTES)
    _HEADER.pack_into(
        batch, 0, header.base_offset, HEADER_BYTES - OVERHEAD_BYTES + len(body), header.leader_epoch, MAGIC, 0,
        header.attributes, header.last_offset_delta, header.base_timestamp, header.max_timestamp, header.producer_id,
        header.producer_epoch, header.base_sequence, header.record_count,
    )  # fmt: skip
    batch += body
    write_crc(batch, 0, len(batch))
    return batch


def write_crc(view: memoryview | bytearray, at: int, length_bytes: int) -> None:
    """Make the checksum of the batch at this position right again."""
    with memoryview(view) as whole:
        _pack_crc(view, at + CRC_AT, crc32c(whole[at + ATTRIBUTES_AT : at + length_bytes]))


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int | None = None,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    attributes: int = 0,
    max_timestamp: int | None = None,
) -> bytearray:
    """A batch as a producer makes it; `attributes` adds flags such as TRANSACTIONAL or CONTROL."""
    kept = list(records)
    assert kept, "a batch without records is made by encode_header"
    first = kept[0]
    base = first.offset if base_offset is None else base_offset
    body = encode_records(kept, base_offset=base, base_timestamp=first.timestamp)
    header = BatchHeader(
        base_offset=base,
        body_bytes=0,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes | codec,
        last_offset_delta=kept[-1].offset - base,
        base_timestamp=first.timestamp,
        max_timestamp=max(record.timestamp for record in kept) if max_timestamp is None else max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(kept),
    )
    return encode_header(header, compress(codec, body, level=level))
