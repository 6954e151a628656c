"""How much work a schema's patterns are, before it is begun: compiled code holds every thread until it is done.

`(?:a{1,500}){1,100}` is fifty thousand times `a`. To compile twenty such patterns would take a second, and so would a
text of a thousand characters that is compared with one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from moldau.core import limits
from moldau.schemas.json_text import objects
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
_SMALL = 20
_PATTERN_STEPS = 5
_MATCHED_IN_A_STEP = 200


def cost_of_all(documents: Iterable[Json]) -> int:
    """Raises InvalidSchema for more than there may be."""
    total = 0
    for document in documents:
        for pattern in _patterns(document):
            total += cost(pattern)
            if total > limits.JSON_PATTERNS_COST_MAX:
                raise InvalidSchema("its patterns take too long to compile: they repeat too much")
    return total


def matching(contents: dict[str, Json], value: Json) -> int:
    """How much work the patterns of a schema are for a value itself, and for the names of its properties."""
    if isinstance(value, str) and isinstance(pattern := contents.get("pattern"), str):
        return _matching(pattern, len(value))
    patterns = contents.get("patternProperties")
    if isinstance(value, dict) and isinstance(patterns, dict):
        size = sum(map(len, value))
        return sum(_matching(each, size) for each in patterns)
    return 0


def steps_of(patterns: Iterable[str], name: str) -> int:
    """Of a comparison, for the name of a property that is tried with each of them."""
    return sum(_PATTERN_STEPS + _matching(each, len(name)) // _MATCHED_IN_A_STEP for each in patterns)


def _matching(pattern: str, size: int) -> int:
    """Small ones count nothing: a text of megabytes may well be told from others by one."""
    each = cost(pattern)
    return each * size if each > _SMALL else 0


def _patterns(document: Json) -> Iterator[str]:
    for found in objects(document):
        if isinstance(pattern := found.get("pattern"), str):
            yield pattern
        if isinstance(patterns := found.get("patternProperties"), dict):
            yield from patterns


@lru_cache(maxsize=1_000)
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
