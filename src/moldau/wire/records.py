"""Records inside a batch: varints, keys, values and headers, read with every length checked and written back.

A `Span` says where the parts of one record lie without copying any of them; a `Record` holds them. The broker works
with spans, because a record of a million headers costs a span nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec

from moldau.core.errors import ApiError, ErrorCode, ProtocolViolation
from moldau.wire.varint import read_varint, read_varlong, write_varint

Buffer: TypeAlias = bytes | bytearray | memoryview
Header: TypeAlias = tuple[bytes, Buffer | None]


class InvalidRecord(ApiError):
    """A record that cannot be what its producer meant: its sizes contradict each other or the batch around it."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, message)


class Span(msgspec.Struct, gc=False):
    """Where one record lies in a payload: `body` is where its attributes byte is, `end` where the next one begins."""

    start: int
    body: int
    end: int
    timestamp_delta: int
    offset_delta: int
    offset_end: int
    key_at: int
    key_size: int
    value_at: int
    value_size: int
    header_count: int
    headers_at: int


class Record(msgspec.Struct):
    """One record; `headers` are (name, value) pairs in the producer's order, names as their UTF-8 bytes."""

    offset: int
    timestamp: int
    key: Buffer | None = None
    value: Buffer | None = None
    headers: tuple[Header, ...] = ()


def spans(payload: Buffer, count: int) -> Iterator[Span]:
    """Exactly `count` records that fill the payload; `InvalidRecord` comes out as soon as that turns out untrue."""
    at = 0
    for _ in range(count):
        span = read_span(payload, at)
        at = span.end
        yield span
    if at != len(payload):
        raise InvalidRecord("Incorrect declared batch size, records still remaining in file")


def read_span(payload: Buffer, start: int) -> Span:
    """Sizes are added up without a check each: a lie runs past the payload or misses the record's declared end.

    Single-byte varints, nearly all there are, are read in place; calls would double the cost.
    """
    size_of = _SMALL
    try:
        byte = payload[start]
        size, body = (size_of[byte], start + 1) if byte < 0x80 else read_varint(payload, start)
        byte = payload[body + 1]
        timestamp_delta, at = (size_of[byte], body + 2) if byte < 0x80 else read_varlong(payload, body + 1)
        byte = payload[at]
        offset_delta, offset_end = (size_of[byte], at + 1) if byte < 0x80 else read_varint(payload, at)
        byte = payload[offset_end]
        key_size, key_at = (size_of[byte], offset_end + 1) if byte < 0x80 else read_varint(payload, offset_end)
        at = key_at + key_size if key_size > 0 else key_at
        byte = payload[at]
        value_size, value_at = (size_of[byte], at + 1) if byte < 0x80 else read_varint(payload, at)
        at = value_at + value_size if value_size > 0 else value_at
        byte = payload[at]
        header_count, headers_at = (size_of[byte], at + 1) if byte < 0x80 else read_varint(payload, at)
        end = body + size
        at = _skip_headers(payload, headers_at, count=header_count) if header_count else headers_at
    except (IndexError, ProtocolViolation):
        raise InvalidRecord("Found invalid record structure") from None
    if at != end or end > len(payload):
        raise InvalidRecord(
            f"Invalid record size: expected to read {size} bytes in record payload, but instead read {at - body}"
        )
    return Span(
        start, body, end, timestamp_delta, offset_delta, offset_end,
        key_at, key_size, value_at, value_size, header_count, headers_at,
    )  # fmt: skip


def _skip_headers(payload: Buffer, at: int, *, count: int) -> int:
    if count < 0:
        raise InvalidRecord(f"Found invalid number of record headers {count}")
    if count > len(payload) - at:
        raise InvalidRecord(
            f"Found invalid number of record headers. {count} is larger than the remaining size of the buffer"
        )
    for _ in range(count):
        size, at = read_varint(payload, at)
        if size < 0:
            raise InvalidRecord(f"Invalid negative header key size {size}")
        size, at = read_varint(payload, at + size)
        at += size if size > 0 else 0
    return at


def read_headers(payload: Buffer, span: Span) -> tuple[Header, ...]:
    """The headers of a record whose span was read, and so checked, before."""
    headers: list[Header] = []
    at = span.headers_at
    for _ in range(span.header_count):
        size, at = read_varint(payload, at)
        name = bytes(payload[at : at + size])
        size, at = read_varint(payload, at + size)
        value = payload[at : at + size] if size >= 0 else None
        at += size if size > 0 else 0
        headers.append((name, value))
    return tuple(headers)


def encode_record(out: bytearray, record: Record, *, base_offset: int, base_timestamp: int) -> None:
    """Append one record as it stands in a batch's payload."""
    body = bytearray(1)  # the record's attributes, which no version of Kafka uses
    body += write_varint(record.timestamp - base_timestamp)
    body += write_varint(record.offset - base_offset)
    _write_bytes(body, record.key)
    _write_bytes(body, record.value)
    body += write_varint(len(record.headers))
    for name, value in record.headers:
        _write_bytes(body, name)
        _write_bytes(body, value)
    out += write_varint(len(body))
    out += body


def encode_records(records: Iterable[Record], *, base_offset: int, base_timestamp: int) -> bytearray:
    out = bytearray()
    for record in records:
        encode_record(out, record, base_offset=base_offset, base_timestamp=base_timestamp)
    return out


def move_record(out: bytearray, payload: Buffer, span: Span, *, offset_delta: int, timestamp_delta: int) -> None:
    """Append a record with other deltas; key, value and headers are copied as they stand."""
    body = bytearray(payload[span.body : span.body + 1])
    body += write_varint(timestamp_delta)
    body += write_varint(offset_delta)
    out += write_varint(len(body) + span.end - span.offset_end)
    out += body
    out += payload[span.offset_end : span.end]


def _write_bytes(out: bytearray, data: Buffer | None) -> None:
    if data is None:
        out.append(1)  # zigzag of -1
        return
    out += write_varint(len(data))
    out += data


# The zigzag values of all varints of one byte.
_SMALL = tuple((byte >> 1) ^ -(byte & 1) for byte in range(0x80))
