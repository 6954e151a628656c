"""How the brokers that share a file tell each other that it changed: a datagram, which is a reason to look.

Nothing depends on one that gets lost, or on a folder whose name is too long for a socket: everybody looks from time to
time all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

SUFFIX = ".wake-"
DATAGRAM_BYTES = 1


class Wakes:
    def __init__(self, path: Path, broker_id: int, look: Callable[[], Awaitable[None]]) -> None:
        """`path` is that of the shared file, and `look` looks at it, for all who pause. Needs a running loop."""
        self._path = path
        self._broker_id = broker_id
        self._look = look
        self._loop = asyncio.get_running_loop()
        self._pauses: set[asyncio.Future[None]] = set()
        self._is_woken = False
        self._looking: asyncio.Task[None] | None = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        own = self._path_of(broker_id)
        try:
            own.unlink(missing_ok=True)  # of the process before this one
            self._socket.bind(bytes(own))
        except OSError:
            return
        self._loop.add_reader(self._socket.fileno(), self._heard)

    def tell(self, broker_ids: Iterable[int]) -> None:
        for broker_id in broker_ids:
            if broker_id != self._broker_id:
                with contextlib.suppress(OSError):  # it does not run, or has not yet read the one before
                    self._socket.sendto(bytes(DATAGRAM_BYTES), bytes(self._path_of(broker_id)))

    async def pause(self, at_most_s: float) -> None:
        """Until somebody told of a change, and it was looked at."""
        pause = self._loop.create_future()
        timer = self._loop.call_later(at_most_s, _end, pause)
        self._pauses.add(pause)
        try:
            await pause
        finally:
            self._pauses.discard(pause)
            timer.cancel()

    def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        with contextlib.suppress(OSError):
            self._path_of(self._broker_id).unlink(missing_ok=True)

    def _heard(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._socket.recv(DATAGRAM_BYTES):
                pass
        self._is_woken = True
        if self._looking is None:
            self._looking = self._loop.create_task(self._look_for_all(), name="metadata-store-wake")

    async def _look_for_all(self) -> None:
        """Once more for what is told meanwhile."""
        try:
            while self._is_woken:
                self._is_woken = False
                await self._look()
                for pause in self._pauses:
                    _end(pause)
        finally:
            self._looking = None

    def _path_of(self, broker_id: int) -> Path:
        return self._path.with_suffix(f"{SUFFIX}{broker_id}")


def _end(pause: asyncio.Future[None]) -> None:
    if not pause.done():
        pause.set_result(None)
