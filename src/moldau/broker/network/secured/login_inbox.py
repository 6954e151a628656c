"""Frames of a client that may not have logged in: short ones, and bare tokens among them."""

from __future__ import annotations

from struct import Struct

from moldau.broker.network.frame_budget import FrameBudget
from moldau.broker.network.inbox import FRAME_BYTES_MIN, Inbox
from moldau.core.errors import ProtocolViolation
from moldau.wire.frame import SIZE_BYTES

TOKEN_BYTES_MIN = 1  # of SaslHandshake v0, without a header
_SIZE = Struct(">i")


class LoginInbox(Inbox):
    __slots__ = ("_bytes_max", "_bytes_min", "_logged_in_bytes_max")

    def __init__(self, scratch: memoryview, *, frame_bytes_max: int, budget: FrameBudget) -> None:
        super().__init__(scratch, frame_bytes_max=frame_bytes_max, budget=budget)
        self._logged_in_bytes_max = frame_bytes_max
        self._bytes_min = FRAME_BYTES_MIN
        self._bytes_max: int | None = frame_bytes_max

    def expect(self, bytes_max: int | None, *, is_token: bool) -> None:
        """How long the next frame may be; None where the limit of a client that has logged in holds."""
        self._bytes_max = bytes_max
        self._bytes_min = TOKEN_BYTES_MIN if is_token else FRAME_BYTES_MIN
        self._frame_bytes_max = self._logged_in_bytes_max if bytes_max is None else bytes_max

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
