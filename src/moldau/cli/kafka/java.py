"""What Java prints without being asked: maps in the order of their hashes, and numbers with a fraction.

Apache Kafka's tools go through hash maps, so the order of their lines looks like chance and is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

K = TypeVar("K")

_MASK = 0xFFFFFFFF
_TABLE_SIZE = 16  # of a new map; it doubles whenever three quarters are taken
_LOAD = 0.75
_PLAIN_MIN, _PLAIN_MAX = 1e-3, 1e7  # numbers between them are written without an exponent


def text_hash(text: str) -> int:
    found = 0
    for unit in _utf16_units(text):
        found = (31 * found + unit) & _MASK
    return found


def _utf16_units(text: str) -> Iterator[int]:
    encoded = text.encode("utf-16-be")
    return (int.from_bytes(encoded[at : at + 2], "big") for at in range(0, len(encoded), 2))


def hash_order(keys: Iterable[K], hash_of: Callable[[K], int], *, sized: bool = False) -> list[K]:
    """As a map gives its keys that were put in in this order; `sized` is one that was made for so many."""
    known = list(keys)
    size = _TABLE_SIZE
    if sized:
        size = 1
        while size < len(known):
            size *= 2
    while len(known) > size * _LOAD:
        size *= 2

    def bucket(key: K) -> int:
        code = hash_of(key)
        return (code ^ code >> 16) & size - 1

    return sorted(known, key=bucket)


def double(value: float) -> str:
    """`Double.toString`."""
    if value == 0 or _PLAIN_MIN <= abs(value) < _PLAIN_MAX or value - value != 0:
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(repr(value), _plain(value))
    digits = repr(value)
    mantissa, _, exponent = f"{value:.{max(_significant(digits) - 1, 1)}e}".partition("e")
    return f"{mantissa}E{int(exponent)}"


def _plain(value: float) -> str:
    text = repr(value)
    return text if "e" not in text else f"{value:f}"


def _significant(digits: str) -> int:
    return len(digits.partition("e")[0].replace(".", "").strip("-").strip("0"))
