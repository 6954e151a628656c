"""Times as a pattern of Java's SimpleDateFormat shows them."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from datetime import datetime

DEFAULT_PATTERN = "yyyy-MM-dd HH:mm:ss:SSS"

_PART = re.compile(r"'([^']*)'|([A-Za-z])\2*|[^A-Za-z']+")
_SHOWN: Mapping[str, Callable[[datetime, int], str]] = {
    "y": lambda at, width: f"{at.year % 100:02}" if width == 2 else f"{at.year:0{width}}",
    "M": lambda at, width: f"{at.month:0{width}}" if width < 3 else at.strftime("%b" if width == 3 else "%B"),
    "d": lambda at, width: f"{at.day:0{width}}",
    "H": lambda at, width: f"{at.hour:0{width}}",
    "h": lambda at, width: f"{at.hour % 12 or 12:0{width}}",
    "m": lambda at, width: f"{at.minute:0{width}}",
    "s": lambda at, width: f"{at.second:0{width}}",
    "S": lambda at, width: f"{at.microsecond // 1_000:0{width}}",
    "a": lambda at, _width: at.strftime("%p"),
    "E": lambda at, width: at.strftime("%a" if width < 4 else "%A"),
    "Z": lambda at, _width: at.astimezone().strftime("%z"),
}


def pattern(text: str) -> str:
    """A type of argument."""
    for found in _PART.finditer(text):
        if found[2] and found[2] not in _SHOWN:
            raise ArgumentTypeError(f"{text!r}: {found[0]} is not known; known are {' '.join(_SHOWN)}")
    return text


def shown(time_s: float, pattern_text: str) -> str:
    at = datetime.fromtimestamp(time_s)

    def part(found: re.Match[str]) -> str:
        if found[2]:
            return _SHOWN[found[2]](at, len(found[0]))
        return found[0] if found[1] is None else found[1] or "'"

    return _PART.sub(part, pattern_text)
