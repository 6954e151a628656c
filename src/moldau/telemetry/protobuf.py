"""Fields of a message in Protobuf's encoding, read without a library: the broker reads one kind of message only.

What is not known is skipped, as everywhere in Protobuf. Nothing is copied but what a field holds, and a size is checked
against the bytes that are left before anything is made of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import TypeAlias

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_VARINT_BYTES_MAX = 10
_U64 = 0xFFFF_FFFF_FFFF_FFFF
_SIGN = 1 << 63
_DOUBLE, _SIGNED, _UNSIGNED = Struct("<d"), Struct("<q"), Struct("<Q")

Field: TypeAlias = tuple[int, int, int, bytes]
"""Number, wire type, and what it holds: the integer of a varint, the bytes of anything else."""


class InvalidProtobuf(Exception):
    """These bytes are no message; the text says what is wrong."""


def fields(data: bytes) -> Iterator[Field]:
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise InvalidProtobuf("a field has the number 0")
        if kind == VARINT:
            value, at = varint(data, at)
            yield number, kind, value, b""
            continue
        size = 8
        if kind == BYTES:
            size, at = varint(data, at)
        elif kind == FIXED32:
            size = 4
        elif kind != FIXED64:
            raise InvalidProtobuf(f"a field has wire type {kind}")
        if size > end - at:
            raise InvalidProtobuf(f"a field of {size} bytes, where {end - at} are left")
        yield number, kind, 0, data[at : at + size]
        at += size


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for _ in range(_VARINT_BYTES_MAX):
        if at >= len(data):
            raise InvalidProtobuf("a number is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _U64, at
        shift += 7
    raise InvalidProtobuf("a number is longer than ten bytes")


def signed(value: int) -> int:
    return value - (1 << 64) if value & _SIGN else value


def double(data: bytes) -> float:
    found: float = _DOUBLE.unpack(data)[0]
    return found


def sfixed64(data: bytes) -> int:
    found: int = _SIGNED.unpack(data)[0]
    return found


def fixed64(data: bytes) -> int:
    found: int = _UNSIGNED.unpack(data)[0]
    return found


def doubles(data: bytes) -> list[float]:
    """A repeated field of numbers of eight bytes."""
    return [value for (value,) in _DOUBLE.iter_unpack(_whole(data))]


def unsigned(data: bytes) -> list[int]:
    return [value for (value,) in _UNSIGNED.iter_unpack(_whole(data))]


def _whole(data: bytes) -> bytes:
    if len(data) % _DOUBLE.size:
        raise InvalidProtobuf("a list of numbers is cut off")
    return data


def string(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidProtobuf("a text is not UTF-8") from None
