"""A line of bash up to the cursor: its words, and how a candidate has to be written to replace the last one."""

from __future__ import annotations

import re
from typing import NamedTuple

_SAFE = re.compile(r"[\w@%+=:,./^-]")
_ESCAPED_IN_DOUBLE = '$`"\\'


class BashLine(NamedTuple):
    words: list[str]
    """Without their quotes; the last is begun, and may be empty."""
    quote: str
    """The one that is still open."""
    replaced: str
    """What of the last word bash leaves as it is, quotes aside: it replaces what follows."""


def parsed(line: str, breaks: str) -> BashLine:
    """`breaks` is COMP_WORDBREAKS: behind one of these, outside of quotes, bash takes another word to begin."""
    words, word, kept, quote = [], "", "", ""
    is_word = False
    at = 0
    while at < len(line):
        char = line[at]
        at += 1
        if quote:
            if char == quote:
                quote = ""
            elif char == "\\" and quote == '"' and line[at : at + 1] in _ESCAPED_IN_DOUBLE:
                word += line[at : at + 1]
                at += 1
            else:
                word += char
        elif char in " \t\n":
            if is_word:
                words.append(word)
            word, kept, is_word = "", "", False
            continue
        elif char in "'\"":
            quote, kept = char, word
        elif char == "\\":
            word += line[at : at + 1]
            at += 1
        else:
            word += char
            if char in breaks:
                kept = word
        is_word = True
    return BashLine([*words, word], quote, kept)


def written(candidate: str, line: BashLine) -> str | None:
    """None if it can't be written there."""
    if not candidate.startswith(line.replaced):
        return None
    rest = candidate[len(line.replaced) :]
    if line.quote == "'":
        return None if "'" in rest else rest
    if line.quote:
        return "".join(f"\\{char}" if char in _ESCAPED_IN_DOUBLE else char for char in rest)
    return "".join(char if _SAFE.match(char) else f"\\{char}" for char in rest)
