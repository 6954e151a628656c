"""Cutting a stream of bytes into frames, with at most one copy of any byte.

Small frames are handled where they were received, in a scratch buffer that all connections share: an idle connection
owns no memory. Only a frame that has not arrived whole gets a buffer of its own, which grows with what has really
arrived and never with what a peer announces.
"""

from __future__ import annotations

from struct import Struct

from moldau.core import limits
from moldau.core.errors import ProtocolViolation

SIZE_BYTES = 4
PRODUCE = 0
FRAME_BYTES_MIN = 8  # key, version and correlation id: a request with less can't even be answered with an error
_SIZE = Struct(">i")
_FIRST_BYTES = 4 * limits.KIB
_GROWTH_BYTES_MAX = 4 * limits.MIB


class Inbox:
    """Received bytes that are not yet answered. `space`, `received`, any number of `next_frame`, then `keep`."""

    __slots__ = ("_at", "_end", "_frame_bytes_max", "_own", "_scratch", "_view")

    def __init__(self, scratch: memoryview, *, frame_bytes_max: int = limits.FRAME_BYTES_MAX) -> None:
        self._scratch = scratch
        self._view = scratch
        self._own: bytearray | None = None
        self._at = 0
        self._end = 0
        self._frame_bytes_max = frame_bytes_max

    def space(self) -> memoryview:
        """Where the next bytes go. Valid until `received`."""
        return self._scratch if self._own is None else self._view[self._end :]

    def received(self, count: int) -> None:
        self._end += count

    def next_frame(self) -> memoryview | None:
        """The next whole frame without its size, as a writable view that is valid until `keep`."""
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

    def keep(self) -> None:
        """Put what is left into memory of our own, for another connection may use the scratch buffer next."""
        left = self._end - self._at
        if not left:
            self._own, self._view, self._at, self._end = None, self._scratch, 0, 0
            return
        if self._own is not None and self._at == 0 and left < len(self._own):
            return
        wanted = self._wanted(left)
        if self._own is None or self._at:
            # Four times what has arrived is all that a frame of usual size needs.
            own = bytearray(max(left, min(wanted, max(4 * left, _FIRST_BYTES))))
            own[:left] = self._view[self._at : self._end]
        else:
            own = self._grown(self._own, max(0, min(wanted - left, 4 * left, _GROWTH_BYTES_MAX)))
        self._own, self._view, self._at, self._end = own, memoryview(own), 0, left

    def _grown(self, own: bytearray, room: int) -> bytearray:
        """Growing where it is moves pages instead of bytes: a large frame is in memory once, not twice."""
        self._view.release()
        try:
            own.extend(bytes(room))
        except BufferError:  # somebody still looks at an earlier frame in it
            own = own + bytes(room)
        return own

    def is_full(self) -> bool:
        """True when there is no room to receive more before a frame is taken out. Asked after `keep`."""
        left = self._end - self._at
        return left > 0 and left >= self._wanted(left)

    def _wanted(self, left: int) -> int:
        """Bytes that make the next frame whole; a little more while not even its size is known."""
        if left < SIZE_BYTES:
            return 4 * limits.KIB
        size = int.from_bytes(self._view[self._at : self._at + SIZE_BYTES], "big", signed=True)
        return SIZE_BYTES + max(size, 0)

    def _check_large(self, size: int, have: int) -> None:
        """Only records may need a large frame, so the API key, the first two bytes of it, has a say."""
        if not FRAME_BYTES_MIN <= size <= self._frame_bytes_max:
            raise ProtocolViolation(f"frame of {size} bytes; allowed {FRAME_BYTES_MIN}..{self._frame_bytes_max}")
        start = self._at + SIZE_BYTES
        if have >= 2 and (key := int.from_bytes(self._view[start : start + 2], "big")) != PRODUCE:
            allowed = limits.CONTROL_FRAME_BYTES_MAX
            raise ProtocolViolation(f"frame of {size} bytes for API key {key}; allowed {FRAME_BYTES_MIN}..{allowed}")
