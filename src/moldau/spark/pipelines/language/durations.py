"""Spans of time as people write them: '10 minutes', '5s', '1 hour 30 minutes'."""

from __future__ import annotations

import re

_UNITS_MS = {
    "ms": 1,
    "millisecond": 1,
    "s": 1_000,
    "sec": 1_000,
    "second": 1_000,
    "m": 60_000,
    "min": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
    "w": 604_800_000,
    "week": 604_800_000,
}
_ONE = re.compile(r"\s*(\d+)\s*([a-z]+)\s*")
ALLOWED = "a number with a unit from ms, seconds, minutes, hours, days and weeks, such as '10 minutes' or '5s'"


def duration_ms(text: str) -> int:
    """Raises ValueError, which says what is allowed."""
    rest, total_ms = text.lower(), 0
    while rest:
        found = _ONE.match(rest)
        unit_ms = found and (_UNITS_MS.get(found[2]) or _UNITS_MS.get(found[2].removesuffix("s")))
        if not found or not unit_ms:
            break
        total_ms += int(found[1]) * unit_ms
        rest = rest[found.end() :]
    if rest or not total_ms:
        raise ValueError(f"{text!r} is no duration; allowed: {ALLOWED}")
    return total_ms
