"""The memory that all connections together may spend on large frames that have not arrived whole.

Each connection is bounded by the size of a frame, but thousands of them are not. Beyond the budget a connection is not
read until others are done. One of them, the favoured, goes on whatever is held, so that they never all wait for each
other; it holds up the rest for as long as it takes, so whoever holds memory and is silent meanwhile is hung up on.
"""

from __future__ import annotations

from typing import Protocol

from moldau.core import limits

FREE_BYTES = 256 * limits.KIB  # a buffer up to this size is not counted, which spares usual frames the counting
_WAKING_BYTES = 4 * limits.MIB  # room for one growth step of one connection


class Holder(Protocol):
    """One connection's received bytes."""

    def has_room(self) -> None:
        """Told after `take` was refused: it may be tried again."""


class FrameBudget:
    __slots__ = ("_bytes_max", "_favoured", "_held_bytes", "_waiting")

    def __init__(self, bytes_max: int = limits.UNFINISHED_FRAMES_BYTES_MAX) -> None:
        self._bytes_max = bytes_max if bytes_max > 0 else limits.UNFINISHED_FRAMES_BYTES_MAX
        self._held_bytes = 0
        self._favoured: Holder | None = None
        self._waiting: dict[Holder, None] = {}

    @property
    def is_short(self) -> bool:
        return bool(self._waiting)

    def is_waiting(self, holder: Holder) -> bool:
        return holder in self._waiting

    def take(self, holder: Holder, count_bytes: int) -> bool:
        """Whether the holder may have that much more; if not, it will be told when to ask again."""
        if self._held_bytes + count_bytes > self._bytes_max:
            if self._favoured is None:
                self._favoured = holder
            elif self._favoured is not holder:
                self._waiting[holder] = None
                return False
        self._waiting.pop(holder, None)
        self._held_bytes += count_bytes
        return True

    def give_back(self, holder: Holder, count_bytes: int) -> None:
        """All that the holder has taken; it waits for nothing any more."""
        self._held_bytes -= count_bytes
        self._waiting.pop(holder, None)
        if self._favoured is holder:
            self._favoured = None
        if self._waiting:
            count = 1 + max(0, self._bytes_max - self._held_bytes) // _WAKING_BYTES
            for woken in tuple(self._waiting)[:count]:
                woken.has_room()
