"""Long work in slices: the event loop does one slice every other turn, whoever's it is, and serves everybody else."""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, Future
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

SLICE_S = 0.003  # a client that asks meanwhile waits for one slice, and for those of its own kind


class LongWork:
    """A queue for all long work of one broker: two of them together hold a turn no longer than one alone."""

    __slots__ = ("_is_called", "_loop", "_queue")

    def __init__(self, loop: AbstractEventLoop | None = None) -> None:
        """On the loop that runs when the first work comes, unless another is given."""
        self._loop = loop
        self._queue: deque[Callable[[], None] | Future[None]] = deque()
        self._is_called = False

    def call(self, work: Callable[[], None]) -> None:
        """Do a slice when its turn comes, not before the loop's next one."""
        self._enqueue(work)

    async def wait(self) -> None:
        """Go on when it is this one's turn."""
        turn: Future[None] = asyncio.get_running_loop().create_future()
        self._enqueue(turn)
        await turn

    def _enqueue(self, work: Callable[[], None] | Future[None]) -> None:
        self._queue.append(work)
        if not self._is_called:
            self._is_called = True
            self._loop = self._loop or asyncio.get_running_loop()
            self._loop.call_soon(self._next)

    def _pause(self) -> None:
        """A turn for everybody else: without it, what was asked during a slice would be answered after the next one."""
        assert self._loop is not None
        self._loop.call_soon(self._next)

    def _next(self) -> None:
        """One slice, or several small ones that are one together."""
        assert self._loop is not None
        turn = Slice(self._loop)
        try:
            while self._queue:
                work = self._queue.popleft()
                if isinstance(work, Future):
                    if not work.done():
                        work.set_result(None)
                        return  # whoever waited for it takes the rest of this turn
                else:
                    work()
                if turn.is_over:
                    return
        finally:
            self._is_called = bool(self._queue)
            if self._is_called:
                self._loop.call_soon(self._pause)


async def in_slices(items: Iterable[T], long_work: LongWork) -> AsyncIterator[T]:
    """One item after the other; whenever those since the last pause took long enough, others have their turn.

    Anything may happen in a pause, so `items` must not be a view of what may change, and an item may be outdated.
    """
    turn = Slice(asyncio.get_running_loop())
    for item in items:
        yield item
        if turn.is_over:
            await long_work.wait()
            turn = Slice(asyncio.get_running_loop())


class Slice:
    """How long a piece of work may go on before others want their turn."""

    __slots__ = ("_end_s", "_loop")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._end_s = loop.time() + SLICE_S

    @property
    def is_over(self) -> bool:
        return self._loop.time() >= self._end_s


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of at most `size` items, in order."""
    chunk: list[T] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
