"""Regular expressions that clients send: RE2's syntax, as in Kafka, and time that grows with the text and no faster.

Python's own `re` goes back and tries again, so that a short pattern could hold the event loop for hours. The library is
loaded when the first pattern comes; most brokers never see one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from moldau.core.limits import PATTERN_BYTES_MAX, PATTERN_CHARS_MAX

# The words that Kafka's implementation has for what is wrong.
_DESCRIPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "missing )": "missing closing )",
        "missing ]": "missing closing ]",
        "trailing \\": "trailing backslash at end of expression",
        "no argument for repetition operator": "missing argument to repetition operator",
        "bad repetition operator": "invalid nested repetition operator",
        "invalid repetition size": "invalid repeat count",
        "invalid named capture group": "invalid named capture",
        "invalid perl operator": "invalid or unsupported Perl syntax",
    }
)


class InvalidPattern(Exception):
    """The text is no pattern; the message says what is wrong with it."""


class CompiledPattern:
    __slots__ = ("_expression", "text")

    def __init__(self, text: str, expression: Any) -> None:
        self.text = text
        self._expression = expression

    def matches(self, name: str) -> bool:
        """Whether the pattern describes the whole name."""
        return self._expression.fullmatch(name) is not None


def compile_pattern(text: str) -> CompiledPattern:
    """Raises InvalidPattern."""
    return CompiledPattern(text, compile_expression(text))


def compile_expression(text: str, *, captures: bool = False) -> Any:
    """RE2's own object, for those who need the groups of a match. Raises InvalidPattern."""
    if len(text) > PATTERN_CHARS_MAX:
        raise InvalidPattern(f"longer than {PATTERN_CHARS_MAX} characters")
    import re2

    options = re2.Options()
    options.log_errors = False  # the client is told; standard error is not for clients' mistakes
    options.never_capture = not captures
    options.max_mem = PATTERN_BYTES_MAX
    try:
        return re2.compile(text, options)
    except re2.error as wrong:
        raise InvalidPattern(_description(wrong)) from None


def _description(wrong: Exception) -> str:
    """The library says what is wrong and, after a colon, where."""
    what = wrong.args[0]
    said = what.decode("utf-8", "replace") if isinstance(what, bytes) else str(what)
    kind = said.split(": ", 1)[0]
    return _DESCRIPTIONS.get(kind, kind)
