"""How much work it is to compile a schema's patterns, before that is begun: it holds every thread until it is done.

`(?:\\w{1,500}){1,100}` is fifty thousand times `\\w`, and twenty such patterns would be a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from moldau.core import limits
from moldau.schemas.model import InvalidSchema, Json

_TOKENS = re.compile(
    r"(?P<unicode>\\[pP](?:\{[^}]{0,40}\})?)"
    r"|(?P<wide>\\[WDS]|\.)"
    r"|(?P<escape>\\.)"
    r"|(?P<class>\[(?P<not>\^)?\]?(?:\\.|[^\]\\])*\]?)"
    r"|(?P<open>\()|(?P<close>\))"
    r"|(?P<counted>\{(?P<least>\d+)(?:,(?P<most>\d*))?\})"
    r"|(?P<other>.)",
    re.DOTALL,
)
_UNICODE = 1_000  # in what one letter takes
_WIDE = 20


def check_patterns(documents: Iterable[Json]) -> None:
    """Raises InvalidSchema."""
    left = limits.JSON_PATTERNS_COST_MAX
    for document in documents:
        for pattern in _patterns(document):
            left -= cost(pattern)
            if left < 0:
                raise InvalidSchema("its patterns take too long to compile: they repeat too much")


def _patterns(document: Json) -> Iterator[str]:
    waiting = [document]
    while waiting:
        found = waiting.pop()
        if isinstance(found, list):
            waiting.extend(found)
        elif isinstance(found, dict):
            waiting.extend(found.values())
            if isinstance(pattern := found.get("pattern"), str):
                yield pattern
            if isinstance(patterns := found.get("patternProperties"), dict):
                yield from patterns


def cost(pattern: str) -> int:
    """In single letters, about."""
    total, last = 0, 0
    outer: list[int] = []
    for token in _TOKENS.finditer(pattern):
        if token["open"]:
            outer.append(total)
            total = last = 0
        elif token["close"]:
            last = total
            total += outer.pop() if outer else 0
        elif token["counted"]:
            times = max(_number(token["least"]), _number(token["most"] or "0"), 1)
            total += last * (times - 1)
            last *= times
        else:
            last = _letters(token)
            total += last
        if total > limits.JSON_PATTERNS_COST_MAX:
            return total
    return total + sum(outer)


def _number(digits: str) -> int:
    return int(digits) if len(digits) < 10 else limits.JSON_PATTERNS_COST_MAX


def _letters(token: re.Match[str]) -> int:
    if token["unicode"]:
        return _UNICODE
    if token["wide"]:
        return _WIDE
    if token["class"]:
        wide = _UNICODE if "\\p" in token[0] or "\\P" in token[0] else _WIDE if token["not"] else 1
        return max(wide, len(token[0]) // 4)
    return 1
