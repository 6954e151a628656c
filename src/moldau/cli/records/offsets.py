"""Where a consumer begins: `start`, `end`, `47`, `-3`, `+2`, `@1700000000000`, `@2026-01-31`, `@-1h`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto

HELP = """\
offsets: start, end, 47 (that offset), -3 (three before the end), +2 (two after the start),
         @1700000000000 (milliseconds), @2026-01-31 or @2026-01-31T12:00:00 (UTC), @-1h (ago; s, m, h, d)
"""

AGO = re.compile(r"-([0-9]+)([smhd])\Z")
MILLISECONDS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Anchor(Enum):
    """What the number of a start counts from."""

    OFFSET = auto()
    AFTER_START = auto()
    BEFORE_END = auto()
    TIMESTAMP_MS = auto()


@dataclass(frozen=True, slots=True)
class Start:
    anchor: Anchor
    number: int


class OutOfRange(Exception):
    """An offset that the partition does not have."""


START = Start(Anchor.AFTER_START, 0)
END = Start(Anchor.BEFORE_END, 0)
NAMES = {"start": START, "beginning": START, "earliest": START, "end": END, "latest": END}


def parse_start(text: str, *, now_ms: int) -> Start:
    """ValueError says which forms there are."""
    if text in NAMES:
        return NAMES[text]
    if text.startswith("@"):
        return Start(Anchor.TIMESTAMP_MS, parse_moment(text[1:], now_ms=now_ms))
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        raise ValueError(f"{text!r} is no offset; expected start, end, 47, -3, +2, @milliseconds, @2026-01-31 or @-1h")
    anchor = {"-": Anchor.BEFORE_END, "+": Anchor.AFTER_START}.get(text[0], Anchor.OFFSET)
    return Start(anchor, abs(int(text)))


def parse_moment(text: str, *, now_ms: int) -> int:
    """Milliseconds since the epoch of a number, a date, a date with a time, or so long ago."""
    if re.fullmatch(r"[0-9]{1,16}", text):
        return int(text)
    ago = AGO.match(text)
    if ago:
        return now_ms - int(ago[1]) * MILLISECONDS[ago[2]]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is no time; expected milliseconds, 2026-01-31, 2026-01-31T12:00:00 or -1h"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1_000)


def resolve(start: Start, *, low: int, high: int, offset_at: Callable[[int], int | None]) -> int:
    """The offset to begin at in a partition that holds `low` up to `high`; no record that late means the end."""
    match start.anchor:
        case Anchor.AFTER_START:
            return min(low + start.number, high)
        case Anchor.BEFORE_END:
            return max(high - start.number, low)
        case Anchor.TIMESTAMP_MS:
            found = offset_at(start.number)
            return high if found is None else found
        case Anchor.OFFSET:
            if not low <= start.number <= high:
                raise OutOfRange(f"offset {start.number} is outside {low}..{high}")
            return start.number
