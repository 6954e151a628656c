"""What Java makes of a replacement: `$1`, `${name}` and `\\` in it, and an empty match at the end that counts, too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_REPLACEMENT = re.compile(r"\\(.)|\$([0-9]+)|\$\{([A-Za-z][A-Za-z0-9]*)\}|([^\\$]+)|(.)", re.DOTALL)

Template = tuple[str | int, ...]
"""Literal text and numbers of groups by turns."""


class InvalidReplacement(Exception):
    """The text says what is wrong, to go on behind the rule that has it."""


def parse_replacement(replacement: str, expression: Any, *, keeps_unknown_groups: bool) -> Template:
    """For an expression of `core/patterns.py`. `keeps_unknown_groups`: $4 of three groups is just that text."""
    return tuple(_parts(replacement, expression, keeps_unknown_groups))


def replaced(expression: Any, template: Template, text: str, *, is_first_only: bool = False) -> str:
    made, at, search_from = [], 0, 0
    while search_from <= len(text):
        match = expression.search(text, search_from)
        if match is None:
            break
        begin, end = match.span()
        made.append(text[at:begin])
        made += [part if isinstance(part, str) else match.group(part) or "" for part in template]
        at, search_from = end, end + (begin == end)
        if is_first_only:
            break
    return "".join([*made, text[at:]])


def _parts(replacement: str, expression: Any, keeps_unknown_groups: bool) -> Iterator[str | int]:
    groups: int = expression.groups
    for escaped, digits, name, literal, other in _REPLACEMENT.findall(replacement):
        if escaped or literal:
            yield escaped or literal
        elif name:
            if name not in expression.groupindex:
                raise InvalidReplacement(f"has no group {name!r}")
            yield expression.groupindex[name]
        elif digits:
            yield from _reference(digits, groups, keeps_unknown_groups)
        else:
            raise InvalidReplacement(f"has a lone {other} in its replacement; write \\{other}")


def _reference(digits: str, groups: int, keeps_unknown_groups: bool) -> Iterator[str | int]:
    """$12 is group 12, or group 1 and the digit 2 if there are less."""
    end = 1
    while end < len(digits) and int(digits[: end + 1]) <= groups:
        end += 1
    number = int(digits[:end])
    if number <= groups:
        yield number
        yield digits[end:]
    elif groups and keeps_unknown_groups:
        yield f"${digits}"
    else:
        raise InvalidReplacement(f"has no group {number}")
