"""Sizes, rates and durations as people write them: `1GB/s`, `512MiB`, `7d`."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError

from moldau.cli.records.offsets import DURATION, duration_ms

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgtp]?)(i?)(b?)(/s)?\Z", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmg]?)(/s)?\Z", re.IGNORECASE)
_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_DURATIONS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))
BYTES_MAX = 10**18
MS_MAX = 100 * 366 * 86_400_000


def size(text: str) -> int:
    """A type of argument: bytes of `500`, `10kB`, `1.5GB`, `512MiB`, with or without `/s` behind it."""
    found = _SIZE.match(text)
    if found is None or (found[3] and not found[2]):
        raise ArgumentTypeError(f"{text!r} is no size; expected a number with a unit, such as 500MB, 1.5GB or 512MiB")
    unit: int = (1024 if found[3] else 1000) ** _POWERS[found[2].lower()]
    bytes_ = round(float(found[1]) * unit)
    if not 0 < bytes_ <= BYTES_MAX:
        raise ArgumentTypeError(f"{text!r}: expected more than nothing and at most {size_text(BYTES_MAX)}")
    return bytes_


def count(text: str) -> float:
    """A type of argument: `250000`, `250k`, `1.5M`, with or without `/s`."""
    found = _NUMBER.match(text)
    number = float(found[1]) * 1000 ** _POWERS[found[2].lower()] if found else 0.0
    if not 0 < number <= BYTES_MAX:
        raise ArgumentTypeError(f"{text!r} is no number of messages; expected such as 50000, 50k or 1.5M")
    return number


def duration(text: str) -> int:
    """A type of argument: milliseconds of `30s`, `12h`, `7d`, `1h30m`."""
    ms = duration_ms(text) if DURATION.match(text) else 0
    if not 0 < ms <= MS_MAX:
        raise ArgumentTypeError(f"{text!r} is no time; expected such as 30s, 12h, 7d or 1h30m")
    return ms


def size_text(bytes_: float) -> str:
    """Decimal units, three digits: `1.25 GB`."""
    at, left = 0, float(bytes_)
    while left >= 1000 and at < len(_DECIMAL) - 1:
        at, left = at + 1, left / 1000
    number = f"{left:.0f}" if at == 0 or left >= 100 else f"{left:.3g}"
    return f"{number} {_DECIMAL[at]}"


def rate_text(bytes_per_s: float) -> str:
    return f"{size_text(bytes_per_s)}/s"


def duration_text(ms: float) -> str:
    """The two largest units: `3 d 4 h`, `12 min`."""
    left, told = int(ms), []
    for unit, length in _DURATIONS:
        number, left = divmod(left, length)
        if number:
            told.append(f"{number} {unit}")
    return " ".join(told[:2]) or f"{int(ms)} ms"
