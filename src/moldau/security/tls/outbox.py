"""Sending buffers and ranges of files over TLS: gathered into pieces of some records, and gone when they were sent."""

from __future__ import annotations

import errno
import os
from collections import deque
from typing import Final, Protocol, TypeAlias

from moldau.core.limits import KIB, MIB
from moldau.security.tls.session import TlsSession

BYTES_PER_TURN_MAX: Final = MIB  # encrypted and copied to the kernel in about two milliseconds
PIECE_BYTES: Final = 64 * KIB  # four records, which stay in a core's own cache


class FilePart(Protocol):
    """A range of a file, as the log hands it out."""

    fd: int
    position: int
    size: int

    def __len__(self) -> int: ...

    def check(self) -> None: ...

    def after(self, count: int) -> FilePart: ...


Part: TypeAlias = "bytes | bytearray | memoryview | FilePart"


def new_scratch() -> memoryview:
    """A buffer that all sessions of one thread share: what is in it never outlives a call."""
    return memoryview(bytearray(PIECE_BYTES))


class TlsOutbox:
    """What one connection still has to send."""

    __slots__ = ("_parts", "_scratch", "_session")

    def __init__(self, session: TlsSession, scratch: memoryview) -> None:
        self._session = session
        self._scratch = scratch
        self._parts: deque[Part] = deque()

    def send(self, parts: list[Part]) -> bool:
        """Send now as much as the socket takes; False when something is left for `flush`."""
        self._parts.extend(part for part in parts if len(part))
        return self.flush()

    def flush(self) -> bool:
        """Go on sending; True when everything is gone. A peer that reads as fast gets no more than a share at once."""
        session, left = self._session, BYTES_PER_TURN_MAX
        while self._parts and left > 0 and session.flush():
            size, sent = self._fill(), 0
            try:
                while sent < size and not session.has_unsent:
                    sent += session.send(self._scratch[sent:size])
            finally:
                self._drop(sent)
            left -= sent
        return not self._parts and session.flush()

    def _fill(self) -> int:
        """Copy what comes next into the scratch buffer: parts that are small share a record.

        They stay in the list until the session has them.
        """
        scratch, at = self._scratch, 0
        for part in self._parts:
            space = scratch[at:]
            if isinstance(part, bytes | bytearray | memoryview):
                taken = min(len(part), len(space))
                space[:taken] = memoryview(part)[:taken]
            else:
                taken = _read(part, space)
            at += taken
            if taken < len(part):
                break
        return at

    def _drop(self, count: int) -> None:
        parts = self._parts
        while count:
            first = parts.popleft()
            if len(first) > count:
                rest = (
                    memoryview(first)[count:]
                    if isinstance(first, bytes | bytearray | memoryview)
                    else first.after(count)
                )
                parts.appendleft(rest)
                return
            count -= len(first)


def _read(part: FilePart, space: memoryview) -> int:
    part.check()
    wanted = min(part.size, len(space))
    found = os.preadv(part.fd, [space[:wanted]], part.position) if wanted else 0
    if found < wanted:
        # The announced size can no longer be kept, so the stream is beyond repair.
        raise OSError(errno.EIO, "a segment became shorter while it was sent")
    return found
