"""What a library in Rust says of a failure: a line for each cause, with arrows in the colours of a terminal."""

from __future__ import annotations

import re

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_NEXT_CAUSE = re.compile(r"\s*\n\s*↳\s*")


def causes_in_a_line(text: str) -> str:
    """Other line breaks stay."""
    return _NEXT_CAUSE.sub(": ", _COLOURS.sub("", text))
