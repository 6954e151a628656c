"""What a state machine decided: facts to append, the reply to give once they are committed, timers to set."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

Reply_co = TypeVar("Reply_co", covariant=True)
R = TypeVar("R")


class Timer(msgspec.Struct, frozen=True):
    """One timer per key: setting it again moves it, `at_ms` of None cancels it."""

    key: Hashable
    at_ms: int | None
    is_kept: bool = False
    """One that is set already stays where it is."""


class Delayed(msgspec.Struct, frozen=True):
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
    otherwise: Callable[[int], Decision[Reply_co]] | None = None
    """What is decided instead if the records are more than one batch holds."""
    then: Callable[[int], Decision[Reply_co]] | None = None
    """What is decided next, at a time of its own, after others had their turn: long work is many such decisions, each
    on the state of its moment. The reply is the last one's."""

    @staticmethod
    def reply_only(reply: R) -> Decision[R]:
        return Decision(records=(), reply=reply)

    def after(self, *facts: Any) -> Decision[Reply_co]:
        """The same decision, with facts that come before its own."""
        return msgspec.structs.replace(self, records=(*facts, *self.records))

    def shaped(self, shape: Callable[[Reply_co], R]) -> Decision[R]:
        """The same decision with its reply in another form."""
        return Decision(
            self.records,
            shape(self.reply),
            self.timers,
            self.released,
            self.is_whole,
            _shaped_later(self.otherwise, shape),
            _shaped_later(self.then, shape),
        )


def _shaped_later(
    decide: Callable[[int], Decision[Any]] | None, shape: Callable[[Any], R]
) -> Callable[[int], Decision[R]] | None:
    return None if decide is None else lambda now_ms: decide(now_ms).shaped(shape)


Slices: TypeAlias = Generator[Decision[R], None, Decision[R]]
"""A long decision on its way: each part is made when it is asked for, and the one that is returned is the last."""


def sliced(slices: Slices[R]) -> Decision[R]:
    """The first part of a long decision, which tells how to get the next one; all of it if it is short."""
    try:
        part = next(slices)
    except StopIteration as end:
        last: Decision[R] = end.value
        return last
    return msgspec.structs.replace(part, then=lambda _: sliced(slices))
