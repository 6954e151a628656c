"""Reading DER, as far as certificates need it: definite lengths, and tags of one byte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

BOOLEAN, INTEGER, OCTET_STRING, OBJECT_ID, SEQUENCE, SET = 0x01, 0x02, 0x04, 0x06, 0x30, 0x31
_LONG_TAG = 0x1F
_LENGTH_BYTES_MAX = 4
OBJECT_ID_BYTES_MAX = 128  # those in use have a dozen; one number of many thousand digits would take seconds


class InvalidDer(ValueError):
    """The bytes are no DER, or not of the expected shape."""


class Element(NamedTuple):
    tag: int
    raw: bytes  # tag and length included
    content: bytes


def element(data: bytes, at: int = 0) -> Element:
    """The element that begins there; whatever follows is not looked at."""
    header = data[at : at + 2]
    if len(header) < 2 or header[0] & _LONG_TAG == _LONG_TAG:
        raise InvalidDer("no element of DER")
    begin, size = at + 2, header[1]
    if size >= 0x80:
        count = size & 0x7F
        if not 0 < count <= _LENGTH_BYTES_MAX:
            raise InvalidDer("a length that is no DER")
        size = int.from_bytes(data[begin : begin + count], "big")
        begin += count
    if begin + size > len(data):
        raise InvalidDer("an element ends before its length says")
    return Element(header[0], data[at : begin + size], data[begin : begin + size])


def elements(content: bytes) -> Iterator[Element]:
    """What a SEQUENCE or a SET holds."""
    at = 0
    while at < len(content):
        found = element(content, at)
        at += len(found.raw)
        yield found


def expect(found: Element | None, *tags: int) -> Element:
    if found is None or found.tag not in tags:
        raise InvalidDer(f"{'nothing' if found is None else f'tag {found.tag:#x}'} where {tags[0]:#x} belongs")
    return found


def object_id(content: bytes) -> str:
    """Dotted decimals; the first byte holds two of them."""
    if len(content) > OBJECT_ID_BYTES_MAX:
        raise InvalidDer(f"an object identifier of {len(content)} bytes; allowed {OBJECT_ID_BYTES_MAX}")
    numbers, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    if not content or content[-1] >= 0x80:
        raise InvalidDer("an object identifier without an end")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))
