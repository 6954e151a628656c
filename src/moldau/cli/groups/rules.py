"""What `--to` says: `earliest`, `latest`, `current`, `47`, `+10`, `-10`, `@-1h`, `@2026-01-31`."""

from __future__ import annotations

import re

from moldau.cli.records.offsets import parse_moment
from moldau.client.groups.resetting import CURRENT, EARLIEST, LATEST, NewOffset, Rule, Surprise, Target

NAMES = {"earliest": EARLIEST, "start": EARLIEST, "latest": LATEST, "end": LATEST, "current": CURRENT}


def parse_rule(text: str, *, now_ms: int) -> Rule:
    """ValueError says which forms there are."""
    if text in NAMES:
        return NAMES[text]
    if text.startswith("@"):
        return Rule(Target.TIMESTAMP, parse_moment(text[1:], now_ms=now_ms))
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise ValueError(
            f"{text!r} is no place in a log; expected earliest, latest, current, 47, +10, -10, @-1h or @2026-01-31"
        )
    return Rule(Target.SHIFT if text[0] in "+-" else Target.OFFSET, int(text))


def note(new: NewOffset) -> str | None:
    match new.surprise:
        case None:
            return None
        case Surprise.NONE_SO_LATE:
            return "no record is as late: the end"
        case Surprise.ABOVE_END:
            return f"{new.asked} is after the end"
        case Surprise.BELOW_START:
            return f"{new.asked} is before the start"
