"""Subscriptions by regular expression, which members of the consumer protocol may send."""

from __future__ import annotations

from moldau.core import patterns
from moldau.core.patterns import CompiledPattern, InvalidPattern

__all__ = ["CompiledPattern", "InvalidPattern", "compile_pattern"]


def compile_pattern(text: str) -> CompiledPattern:
    """Raises InvalidPattern, with the message that goes to the client beside INVALID_REGULAR_EXPRESSION."""
    try:
        return patterns.compile_pattern(text)
    except InvalidPattern as wrong:
        message = f"SubscribedTopicRegex `{text}` is not a valid regular expression: {wrong}."
        raise InvalidPattern(message) from None
