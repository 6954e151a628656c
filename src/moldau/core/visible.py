"""Text of strangers, in which control characters are shown and do nothing."""

from __future__ import annotations

import re

# C0 but tab and newline, DEL, C1, and what turns the direction of text around.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_LINE_BREAKING = re.compile("[\t\n\u2028\u2029]")
# The same in UTF-8; a lone byte of C1 is no text, and no terminal of UTF-8 obeys it.
_CONTROL_BYTES = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]")


def visible(text: str) -> str:
    """Tabs and newlines stay."""
    return _CONTROL.sub(_escaped, text)


def in_one_line(text: str) -> str:
    """A cell of a table, which neither breaks its line nor makes others up."""
    return visible(_LINE_BREAKING.sub(_escaped, text))


def visible_bytes(text: bytes) -> bytes:
    return _CONTROL_BYTES.sub(lambda found: visible(found[0].decode()).encode(), text)


def _escaped(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]
