"""Cutting a stream of bytes into frames, with at most one copy of any byte.

Small frames are handled where they were received, in a scratch buffer that all connections share: an idle connection
owns no memory. Only a frame that has not arrived whole gets a buffer of its own, which grows with what has really
arrived and never with what a peer announces, within the budget that all connections share.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from moldau.broker.network.frame_budget import FREE_BYTES, FrameBudget
from moldau.broker.network.greetings import ForeignProtocol, foreign_protocol
from moldau.core import limits
from moldau.core.errors import ProtocolViolation
from moldau.wire.frame import SIZE_BYTES

PRODUCE = 0
FRAME_BYTES_MIN = 8  # key, version and correlation id: a request with less can't even be answered with an error
_SIZE = Struct(">i")
_FIRST_BYTES = 4 * limits.KIB
GROWTH_BYTES_MAX = 4 * limits.MIB


class Inbox:
    """Received bytes that are not yet answered. `space`, `received`, any number of `next_frame`, then `keep`.

    While `may_have_more`, `space_behind` and `received` may go before more of `next_frame`.
    """

    __slots__ = (
        "_at",
        "_budget",
        "_end",
        "_frame_bytes_max",
        "_growth_bytes_max",
        "_own",
        "_scratch",
        "_taken_bytes",
        "_view",
        "large_frames",
        "on_room",
    )

    def __init__(
        self,
        scratch: memoryview,
        *,
        frame_bytes_max: int = limits.FRAME_BYTES_MAX,
        budget: FrameBudget | None = None,
    ) -> None:
        self.on_room: Callable[[], None] | None = None
        self.large_frames = 0  # that had a share of the budget, the present one included
        self._budget = budget or FrameBudget()
        self._taken_bytes = 0
        self._scratch = scratch
        self._view = scratch
        self._own: bytearray | None = None
        self._at = 0
        self._end = 0
        self._frame_bytes_max = frame_bytes_max
        self._growth_bytes_max = GROWTH_BYTES_MAX

    def space(self) -> memoryview:
        """Where the next bytes go. Valid until `received`."""
        return self._scratch if self._own is None else self._view[self._end :]

    def may_have_more(self) -> bool:
        """Whether the buffer that all share was filled, so that more is likely to come, and can hold the next frame."""
        if self._end != len(self._scratch) or self._own is not None:
            return False
        left = self._end - self._at
        return left == 0 or self._wanted(left) <= len(self._scratch)

    def space_behind(self) -> memoryview:
        """Room for more behind what is left, which moves to the front."""
        left = self._end - self._at
        if left:
            self._scratch[:left] = self._scratch[self._at : self._end]
        self._at, self._end = 0, left
        return self._scratch[left:]

    def received(self, count: int) -> None:
        self._end += count

    def next_frame(self) -> memoryview | None:
        """The next whole frame without its size, as a writable view that is valid until `keep` or `space_behind`."""
        view, at = self._view, self._at
        have = self._end - at - SIZE_BYTES
        if have < 0:
            return None
        size: int = _SIZE.unpack_from(view, at)[0]
        if not FRAME_BYTES_MIN <= size <= limits.CONTROL_FRAME_BYTES_MAX:
            self._check_large(size, have)
        if have < size:
            return None
        start = at + SIZE_BYTES
        self._at = start + size
        return view[start : start + size]

    def keep(self) -> bool:
        """Put what is left into memory of our own, for another connection may use the scratch buffer next.

        False when more must not be received now; `on_room` tells when to ask again.
        """
        left = self._end - self._at
        if not left:
            self._at = self._end = 0
            if self._own is not None:
                self.close()
            return True
        if self._own is not None and self._at == 0 and left < len(self._own):
            return True
        return self._make_room(left)

    def hold(self) -> bool:
        """`keep` while no frame is taken out: a whole one is enough, so nothing more is received then."""
        if self._own is None or not self.is_full():
            return self.keep() and not self.is_full()
        return False

    def pause(self) -> bool:
        """`hold` for a client that has to pause: a frame that needs a share of the budget is left to the socket."""
        left = self._end - self._at
        if not left or max(left, self._wanted(left)) <= FREE_BYTES:
            return self.hold()
        if self._own is None or self._at:
            own = bytearray(self._view[self._at : self._end])
            self._own, self._view, self._at, self._end = own, memoryview(own), 0, left
            self._give_back()
        return False

    def close(self) -> None:
        """Let go of the memory, and of the share of the budget."""
        self._own, self._view, self._at, self._end = None, self._scratch, 0, 0
        self._give_back()

    def has_room(self) -> None:
        if self.on_room is not None:
            self.on_room()

    @property
    def holds_up_others(self) -> bool:
        """Others can't have the memory that this one holds, and it doesn't wait for them in turn."""
        return self._taken_bytes > 0 and not self._budget.is_waiting(self)

    def _make_room(self, left: int) -> bool:
        wanted = self._wanted(left)
        if self._own is None or self._at:
            self._give_back()
            # Four times what has arrived is all that a frame of usual size needs.
            size = max(left, min(wanted, max(4 * left, _FIRST_BYTES)))
            own = bytearray(size if self._take(size) else left)
            own[:left] = self._view[self._at : self._end]
        else:
            room = max(0, min(wanted - left, 4 * left, self._growth_bytes_max))
            if not self._take(left + room):
                return False
            own = self._grown(self._own, room)
        self._own, self._view, self._at, self._end = own, memoryview(own), 0, left
        return left < len(own) or left >= wanted

    def _take(self, size: int) -> bool:
        """A share of the budget for a buffer of that size."""
        if size > max(FREE_BYTES, self._taken_bytes):
            if not self._budget.take(self, size - self._taken_bytes):
                return False
            self.large_frames += not self._taken_bytes
            self._taken_bytes = size
        return True

    def _give_back(self) -> None:
        if self._taken_bytes or self._budget.is_waiting(self):
            taken, self._taken_bytes = self._taken_bytes, 0
            self._budget.give_back(self, taken)

    def _grown(self, own: bytearray, room: int) -> bytearray:
        """Growing where it is moves pages instead of bytes: a large frame is in memory once, not twice."""
        self._view.release()
        try:
            own.extend(bytes(room))
        except BufferError:  # somebody still looks at an earlier frame in it
            own = own + bytes(room)
        return own

    def is_full(self) -> bool:
        """True when a whole frame is here, so that there is no use in receiving more before it is taken out."""
        left = self._end - self._at
        return left > 0 and left >= self._wanted(left)

    def _wanted(self, left: int) -> int:
        """Bytes that make the next frame whole; a little more while not even its size is known."""
        if left < SIZE_BYTES:
            return 4 * limits.KIB
        size = int.from_bytes(self._view[self._at : self._at + SIZE_BYTES], "big", signed=True)
        # A frame of an absurd size is as whole as it gets: `next_frame` refuses it.
        return SIZE_BYTES + (size if 0 <= size <= self._frame_bytes_max else 0)

    def _check_large(self, size: int, have: int) -> None:
        """Only records may need a large frame, so the API key, the first two bytes of it, has a say."""
        if not FRAME_BYTES_MIN <= size <= self._frame_bytes_max:
            self._refuse_foreign()
            raise ProtocolViolation(f"frame of {size} bytes; allowed {FRAME_BYTES_MIN}..{self._frame_bytes_max}")
        start = self._at + SIZE_BYTES
        if have >= 2 and (key := int.from_bytes(self._view[start : start + 2], "big")) != PRODUCE:
            self._refuse_foreign()
            allowed = limits.CONTROL_FRAME_BYTES_MAX
            raise ProtocolViolation(f"frame of {size} bytes for API key {key}; allowed {FRAME_BYTES_MIN}..{allowed}")

    def _refuse_foreign(self) -> None:
        speaks = foreign_protocol(bytes(self._view[self._at : self._at + SIZE_BYTES]))
        if speaks is not None:
            raise ForeignProtocol(speaks)
