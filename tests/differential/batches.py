"""Record batches written by hand, so that every field can be made to lie, and read back for comparison."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import cramjam
import lz4.frame
import zstandard
from crc32c import crc32c

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 0x08, 0x10, 0x20
HEADER = struct.Struct(">qiibIhiqqqhii")
XERIAL = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"


def varint(value: int) -> bytes:
    return unsigned(value << 1 ^ value >> 63)


def unsigned(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def sized(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def record(
    value: bytes | None,
    *,
    key: bytes | None = None,
    headers: Sequence[tuple[bytes, bytes | None]] = (),
    offset_delta: int = 0,
    timestamp_delta: int = 0,
    header_count: int | None = None,
    attributes: int = 0,
) -> bytes:
    body = bytes([attributes]) + varint(timestamp_delta) + varint(offset_delta) + sized(key) + sized(value)
    body += varint(len(headers) if header_count is None else header_count)
    body += b"".join(sized(name) + sized(content) for name, content in headers)
    return varint(len(body)) + body


def compress(codec: int, data: bytes) -> bytes:
    if codec == GZIP:
        return gzip.compress(data, mtime=0)
    if codec == SNAPPY:
        block = bytes(cramjam.snappy.compress_raw(data))
        return XERIAL + struct.pack(">i", len(block)) + block
    if codec == LZ4:
        return bytes(lz4.frame.compress(data, block_linked=False))
    if codec == ZSTD:
        return zstandard.compress(data)
    return data


def decompress(codec: int, data: bytes) -> bytes:
    if codec == GZIP:
        return zlib.decompress(data, wbits=31)
    if codec == SNAPPY:
        return b"".join(bytes(cramjam.snappy.decompress_raw(block)) for block in xerial_blocks(data))
    if codec == LZ4:
        return bytes(lz4.frame.decompress(data))
    if codec == ZSTD:
        return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    return data


def xerial_blocks(data: bytes) -> Iterable[bytes]:
    at = len(XERIAL)
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


def batch(
    records: Sequence[bytes | None],
    *,
    timestamp: int,
    codec: int = NONE,
    attributes: int = 0,
    base_offset: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    raw: bytes | None = None,
    magic: int = 2,
    flip_crc: int = 0,
    count: int | None = None,
    last_offset_delta: int | None = None,
    size_delta: int = 0,
    max_timestamp: int | None = None,
    leader_epoch: int = -1,
) -> bytes:
    """One batch of keyless values a millisecond apart, or of `raw` records; each keyword replaces one honest field."""
    total = len(records) if count is None else count
    payload = raw
    if payload is None:
        payload = b"".join(record(one, offset_delta=i, timestamp_delta=i) for i, one in enumerate(records))
    payload = compress(codec, payload)
    last = len(records) - 1 if last_offset_delta is None else last_offset_delta
    newest = timestamp + max(0, len(records) - 1) if max_timestamp is None else max_timestamp
    covered = struct.pack(">hiqqqhii", codec | attributes, last, timestamp, newest, *producer, total) + payload
    crc = crc32c(covered) ^ flip_crc
    return struct.pack(">qiibI", base_offset, len(covered) + 9 + size_delta, leader_epoch, magic, crc) + covered


def old_message(value: bytes, *, magic: int, timestamp: int) -> bytes:
    """A message set of one message as clients wrote before Kafka 0.11."""
    body = bytes([magic, 0]) + (struct.pack(">q", timestamp) if magic else b"") + struct.pack(">i", -1)
    body += struct.pack(">i", len(value)) + value
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message


def describe(data: bytes | None) -> list[Any]:
    """Batches of a fetched record set, field by field; compressed bytes as what they hold, for compressors differ."""
    described: list[Any] = []
    at, data = 0, data or b""
    while at + HEADER.size <= len(data):
        head = HEADER.unpack_from(data, at)
        end = at + 12 + head[1]
        if end > len(data):
            break
        payload = data[at + HEADER.size : end]
        codec = head[5] & 7
        names = (
            "base_offset",
            "leader_epoch",
            "magic",
            "attributes",
            "last_offset_delta",
            "base_timestamp",
            "max_timestamp",
            "producer_id",
            "producer_epoch",
            "base_sequence",
            "count",
        )
        fields = dict(zip(names, (head[0], *head[2:4], *head[5:]), strict=True))
        if crc32c(data[at + 21 : end]) != head[4]:
            fields["crc"] = "wrong"
        described.append(fields | {"records": decompress(codec, payload).hex()})
        at = end
    if at < len(data):
        described.append(f"the first {len(data) - at} bytes of a batch")
    return described
