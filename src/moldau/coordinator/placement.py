"""Which partition of an internal topic a group or a transactional id belongs to."""

from __future__ import annotations

from struct import iter_unpack

_INT_MIN = -(2**31)


def partition_for(key: str, partition_count: int) -> int:
    """As every Kafka broker and tool computes it, from Java's hash of the id."""
    code = java_hash(key)
    return 0 if code == _INT_MIN else abs(code) % partition_count


def java_hash(text: str) -> int:
    """`String.hashCode`: over UTF-16 units, wrapping at 32 bits."""
    code = 0
    units = text.encode() if text.isascii() else [unit for (unit,) in iter_unpack(">H", _utf_16(text))]
    for unit in units:
        code = (31 * code + unit) & 0xFFFFFFFF
    return code - 2**32 if code >= 2**31 else code


def _utf_16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")
