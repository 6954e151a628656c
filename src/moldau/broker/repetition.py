"""A guard against short requests with enormous answers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from moldau.core.errors import ProtocolViolation
from moldau.core.limits import REPEATED_QUESTIONS_MAX


def refuse_repetition(questions: Sequence[Hashable]) -> None:
    """What differs is bounded by what exists; only the same question again and again makes an answer without bounds."""
    repeated = len(questions) - len(set(questions))
    if repeated > REPEATED_QUESTIONS_MAX:
        raise ProtocolViolation(f"{repeated} questions are repeated; allowed are {REPEATED_QUESTIONS_MAX}")
