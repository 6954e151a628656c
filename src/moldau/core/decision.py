"""What a state machine decided: facts to append, the reply to give once they are committed, timers to set."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Reply = TypeVar("Reply")


@dataclass(frozen=True, slots=True)
class Timer:
    """One timer per key: setting it again moves it, `at_ms` of None cancels it."""

    key: Hashable
    at_ms: int | None


@dataclass(frozen=True, slots=True)
class Decision(Generic[Reply]):
    records: Sequence[Any]
    reply: Reply
    timers: tuple[Timer, ...] = ()

    @classmethod
    def reply_only(cls, reply: Reply) -> Decision[Reply]:
        return cls(records=(), reply=reply)
