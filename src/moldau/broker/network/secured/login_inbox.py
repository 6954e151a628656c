"""Frames of a client that may not have logged in: short ones, and bare tokens among them.

What strangers send counts against memory of their own, and not against that of clients who are known. When there is
too much of it, the one that began first is given up: an honest login takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from moldau.broker.network.frame_budget import FrameBudget
from moldau.broker.network.inbox import FRAME_BYTES_MIN, GROWTH_BYTES_MAX, Inbox
from moldau.core.errors import ProtocolViolation
from moldau.core.limits import KIB, MIB
from moldau.wire.frame import SIZE_BYTES

TOKEN_BYTES_MIN = 1  # of SaslHandshake v0, without a header
LOGINS_BYTES_MAX: Final = 16 * MIB  # of a listener's frames before a login that have not arrived whole
RECEIVED_AT_ONCE_MAX: Final = 16 * KIB  # each turn of a stranger is short, and an honest login needs no second one
STRANGERS_GROWTH_BYTES_MAX: Final = 2 * RECEIVED_AT_ONCE_MAX  # new memory is found page by page, which takes a while
FREE_LOGIN_BYTES: Final = 4 * KIB  # a buffer up to this size is not counted: passwords and most tokens need no more
_SIZE = Struct(">i")


class LoginMemory:
    """Who of those that have not logged in holds how much of a listener's memory."""

    __slots__ = ("_bytes_max", "_held", "_held_bytes")

    def __init__(self, bytes_max: int = LOGINS_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._held: dict[LoginInbox, int] = {}
        self._held_bytes = 0

    def take(self, inbox: LoginInbox, size: int) -> None:
        """All that it holds from now on. If this is too much together, whoever came first of the others loses theirs.

        At once, and not when they are closed: one turn of the loop may read from hundreds.
        """
        self._held_bytes += size - self._held.get(inbox, 0)
        self._held[inbox] = size
        while self._held_bytes > self._bytes_max and len(self._held) > 1:
            first = next(each for each in self._held if each is not inbox)
            first.close()
            if first.on_evicted is not None:
                first.on_evicted()

    def give_back(self, inbox: LoginInbox) -> None:
        self._held_bytes -= self._held.pop(inbox, 0)


class LoginInbox(Inbox):
    __slots__ = ("_bytes_max", "_bytes_min", "_is_stranger", "_logged_in_bytes_max", "_memory", "on_evicted")

    def __init__(
        self, scratch: memoryview, *, frame_bytes_max: int, budget: FrameBudget, memory: LoginMemory | None = None
    ) -> None:
        super().__init__(scratch, frame_bytes_max=frame_bytes_max, budget=budget)
        self.on_evicted: Callable[[], None] | None = None
        """Told when its memory is given to others: it has to be closed, and soon."""
        self._memory = memory or LoginMemory()
        self._logged_in_bytes_max = frame_bytes_max
        self._bytes_min = FRAME_BYTES_MIN
        self._bytes_max: int | None = frame_bytes_max
        self._is_stranger = True
        self._growth_bytes_max = STRANGERS_GROWTH_BYTES_MAX

    def expect(self, bytes_max: int | None, *, is_token: bool, is_known: bool) -> None:
        """How long the next frame may be; None where the limit of a client that has logged in holds."""
        if is_known:
            self._memory.give_back(self)
        self._is_stranger = not is_known
        self._growth_bytes_max = GROWTH_BYTES_MAX if is_known else STRANGERS_GROWTH_BYTES_MAX
        self._bytes_max = bytes_max
        self._bytes_min = TOKEN_BYTES_MIN if is_token else FRAME_BYTES_MIN
        self._frame_bytes_max = self._logged_in_bytes_max if bytes_max is None else bytes_max

    def space(self) -> memoryview:
        space = super().space()
        return space[:RECEIVED_AT_ONCE_MAX] if self._is_stranger else space

    def next_frame(self) -> memoryview | None:
        if self._bytes_max is None:
            return super().next_frame()
        view, at = self._view, self._at
        have = self._end - at - SIZE_BYTES
        if have < 0:
            return None
        size: int = _SIZE.unpack_from(view, at)[0]
        if not self._bytes_min <= size <= self._bytes_max:
            self._refuse_foreign()
            raise ProtocolViolation(
                f"frame of {size} bytes before a login; allowed {self._bytes_min}..{self._bytes_max}"
            )
        if have < size:
            return None
        start = at + SIZE_BYTES
        self._at = start + size
        return view[start : start + size]

    def _take(self, size: int) -> bool:
        if not self._is_stranger:
            return super()._take(size)
        if size > FREE_LOGIN_BYTES:
            self._memory.take(self, size)
        return True

    def _give_back(self) -> None:
        self._memory.give_back(self)
        super()._give_back()
