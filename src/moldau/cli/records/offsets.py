"""What a consumer reads: `start`, `47`, `-3`, `+2:end`, `10:20`, `@2026-01-31`, `@-1h:end`, `@-2h:-1h`, `:end`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto

HELP = """\
offsets: start, end, 47 (that offset), -3 (three before the end), +2 (two after the start),
         @1700000000000 (milliseconds; ten digits are seconds), @2026-01-31 or @2026-01-31T12:00:00 (UTC),
         @-1h (ago; ms, s, m, h, d, as in @-1h30m)
ranges:  47:end, 10:20, :end, -5:end, @-1h:end, @-2h:-1h, @2026-01-31:2026-02-01, @2026-01-31:1h (so long after)
         The end is not read itself; `end` is where a partition ends now. A range that has an end ends the command.
"""

DURATION = re.compile(r"(?:[0-9]+(?:ms|s|m|h|d))+\Z")
PART = re.compile(r"([0-9]+)(ms|s|m|h|d)")
MILLISECONDS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
SECONDS_DIGITS, NANOSECONDS_DIGITS = 10, 19


class Anchor(Enum):
    """What the number of a bound counts from."""

    OFFSET = auto()
    AFTER_START = auto()
    BEFORE_END = auto()
    TIMESTAMP_MS = auto()


@dataclass(frozen=True, slots=True)
class Start:
    """A bound of what is read: the end of a range is written in the same words."""

    anchor: Anchor
    number: int


@dataclass(frozen=True, slots=True)
class Range:
    start: Start
    end: Start | None = None


class OutOfRange(Exception):
    """An offset that the partition does not have."""


START = Start(Anchor.AFTER_START, 0)
END = Start(Anchor.BEFORE_END, 0)
NAMES = {
    "start": START, "beginning": START, "earliest": START, "oldest": START, "end": END, "latest": END, "newest": END,
}  # fmt: skip


def parse_range(text: str, *, now_ms: int) -> Range:
    """ValueError says which forms there are."""
    try:
        return Range(parse_start(text, now_ms=now_ms))
    except ValueError as wrong:
        # A time has colons of its own: the first split that makes sense counts.
        for at in (each.start() for each in re.finditer(":", text)):
            found = _split(text[:at], text[at + 1 :], now_ms)
            if found is not None:
                return found
        raise wrong from None


def _split(left: str, right: str, now_ms: int) -> Range | None:
    if not right and not left:
        return None
    try:
        start = START if left in ("", "@") else parse_start(left, now_ms=now_ms)
        if not right:
            return Range(start)
        if left.startswith("@") and right not in NAMES and not right.startswith("@"):
            if DURATION.match(right) and start.anchor is Anchor.TIMESTAMP_MS:
                return Range(start, Start(Anchor.TIMESTAMP_MS, start.number + duration_ms(right)))
            right = f"@{right}"
        return Range(start, parse_start(right, now_ms=now_ms))
    except ValueError:
        return None


def parse_start(text: str, *, now_ms: int) -> Start:
    """ValueError says which forms there are."""
    if text in NAMES:
        return NAMES[text]
    if text.startswith("@"):
        return Start(Anchor.TIMESTAMP_MS, parse_moment(text[1:], now_ms=now_ms))
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        raise ValueError(
            f"{text!r} is no offset; expected start, end, 47, -3, +2, @milliseconds, @2026-01-31, @-1h"
            " or a range such as 10:20 or @-1h:end"
        )
    anchor = {"-": Anchor.BEFORE_END, "+": Anchor.AFTER_START}.get(text[0], Anchor.OFFSET)
    return Start(anchor, abs(int(text)))


def parse_moment(text: str, *, now_ms: int) -> int:
    """Milliseconds since the epoch of a number, a date, a date with a time, or so long ago."""
    moment_ms = _moment_ms(text, now_ms=now_ms)
    if moment_ms < 0:  # -1 and its like have meanings of their own in requests
        raise ValueError(f"{text!r} is before 1970, where the time of records begins")
    return moment_ms


def _moment_ms(text: str, *, now_ms: int) -> int:
    if re.fullmatch(r"[0-9]{1,16}|[0-9]{19}", text):
        scale = {SECONDS_DIGITS: 1_000, NANOSECONDS_DIGITS: 1e-6}.get(len(text), 1)
        return int(int(text) * scale)
    if text.startswith("-") and DURATION.match(text[1:]):
        return now_ms - duration_ms(text[1:])
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is no time; expected milliseconds, 2026-01-31, 2026-01-31T12:00:00 or -1h"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1_000)


def duration_ms(text: str) -> int:
    return sum(int(number) * MILLISECONDS[unit] for number, unit in PART.findall(text))


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


def resolve_range(
    wanted: Range, *, low: int, high: int, offset_at: Callable[[int], int | None]
) -> tuple[int, int | None]:
    """Where to begin and what is read no more. A range with an end takes what the partition has of it."""
    if wanted.end is None:
        return resolve(wanted.start, low=low, high=high, offset_at=offset_at), None

    def bound(each: Start) -> int:
        if each.anchor is Anchor.OFFSET:
            return min(max(each.number, low), high)
        return resolve(each, low=low, high=high, offset_at=offset_at)

    return bound(wanted.start), bound(wanted.end)
