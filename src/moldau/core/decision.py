"""What a state machine decided: facts to append, the reply to give once they are committed, timers to set."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

Reply_co = TypeVar("Reply_co", covariant=True)
R = TypeVar("R")


class Timer(msgspec.Struct, frozen=True):
    """One timer per key: setting it again moves it, `at_ms` of None cancels it."""

    key: Hashable
    at_ms: int | None
    is_kept: bool = False
    """One that is set already stays where it is."""


class Parked(msgspec.Struct, frozen=True):
    """The reply of a request that waits until another decision releases it under this key."""

    key: Hashable


class Released(msgspec.Struct, frozen=True):
    """The reply to whoever waits under this key; nobody may."""

    key: Hashable
    reply: Any


class Decision(msgspec.Struct, Generic[Reply_co], frozen=True):
    records: Sequence[Any]
    reply: Reply_co
    timers: tuple[Timer, ...] = ()
    released: tuple[Released, ...] = ()
    is_whole: bool = True
    """The records are written together or not at all. Otherwise any number of them, from the first on, makes sense."""

    @staticmethod
    def reply_only(reply: R) -> Decision[R]:
        return Decision(records=(), reply=reply)

    def after(self, *facts: Any) -> Decision[Reply_co]:
        """The same decision, with facts that come before its own."""
        return Decision((*facts, *self.records), self.reply, self.timers, self.released, self.is_whole)

    def shaped(self, shape: Callable[[Reply_co], R]) -> Decision[R]:
        """The same decision with its reply in another form."""
        return Decision(self.records, shape(self.reply), self.timers, self.released, self.is_whole)
