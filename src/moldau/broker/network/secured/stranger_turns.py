"""When strangers have their turn: all of them together have `TURN_S` of each turn of the loop, and go after the others.

Where others keep the loop for longer, strangers have a share of that time, or nobody could log in to a busy broker.
What counts is the processor's time: an idle loop owes strangers nothing, for their next turn can follow at once.

What strangers can make the loop do is accepting them, reading, answering and closing. Their sockets are watched apart,
so that the loop is told once that some of them can be read, and not of each of a thousand; they are then asked for a
few at a time. Before they have their turn, what clients who are known were answered is sent.

It has the methods of a loop and of `Turns` that a connection uses, which so need not know whose it is. Like a loop it
tells of a socket again until that was read, of a reset, too.
"""

from __future__ import annotations

import select
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from functools import partial
from time import monotonic, thread_time
from typing import Any, Final

TURN_S: Final = 0.0001  # as long as a request of a known client takes
SHARE: Final = 0.2  # of what the loop did for others since their last turn
TURN_S_MAX: Final = 0.0005
ASKED_AT_ONCE: Final = 4  # sockets: the rest are told of again, after those that came meanwhile
_ENDED = select.EPOLLERR | select.EPOLLHUP
_READABLE, _WRITABLE = select.EPOLLIN | _ENDED, select.EPOLLOUT | _ENDED

Do = Callable[[], object]


class StrangerTurns:
    __slots__ = (
        "_busy",
        "_done_s",
        "_epoll",
        "_is_due",
        "_loop",
        "_readers",
        "_seconds",
        "_send_known",
        "_waiting",
        "_writers",
    )

    def __init__(
        self,
        loop: AbstractEventLoop,
        seconds: Callable[[], float] = monotonic,
        busy: Callable[[], float] = thread_time,
    ) -> None:
        """`busy` is how many seconds the loop's thread has worked."""
        self._loop = loop
        self._seconds = seconds
        self._busy = busy
        self._epoll = select.epoll()
        self._readers: dict[int, Do] = {}
        self._writers: dict[int, Do] = {}
        self._waiting: deque[Do] = deque()
        self._is_due = False
        self._done_s = busy()
        self._send_known: list[Do] = []

    def come_after(self, send: Do) -> None:
        """`send` is called before each turn."""
        self._send_known.append(send)

    @property
    def slice_s(self) -> float:
        return TURN_S

    def queue(self, go_on: Do) -> None:
        """Call it when it is its turn, never at once."""
        self._waiting.append(go_on)
        self._go_on_soon()

    def send_soon(self, send: Do, _: float) -> None:
        self.queue(send)

    def call_soon(self, do: Callable[..., object], *arguments: Any) -> None:
        self.queue(partial(do, *arguments))

    def add_reader(self, descriptor: int, do: Callable[..., object], *arguments: Any) -> None:
        self._watch(descriptor, self._readers, partial(do, *arguments))

    def remove_reader(self, descriptor: int) -> None:
        self._ignore(descriptor, self._readers)

    def add_writer(self, descriptor: int, do: Callable[..., object], *arguments: Any) -> None:
        self._watch(descriptor, self._writers, partial(do, *arguments))

    def remove_writer(self, descriptor: int) -> None:
        self._ignore(descriptor, self._writers)

    def _watch(self, descriptor: int, those: dict[int, Do], do: Do) -> None:
        if not self._readers and not self._writers:
            self._loop.add_reader(self._epoll.fileno(), self._go_on_soon)
        wanted = self._events(descriptor) | (select.EPOLLIN if those is self._readers else select.EPOLLOUT)
        is_new = descriptor not in self._readers and descriptor not in self._writers
        (self._epoll.register if is_new else self._epoll.modify)(descriptor, wanted)
        those[descriptor] = do  # only now: who is noted and not watched could never be let go

    def _ignore(self, descriptor: int, those: dict[int, Do]) -> None:
        if those.pop(descriptor, None) is None:
            return
        if events := self._events(descriptor):
            self._epoll.modify(descriptor, events)
            return
        self._epoll.unregister(descriptor)
        if not self._readers and not self._writers:
            self._loop.remove_reader(self._epoll.fileno())

    def _events(self, descriptor: int) -> int:
        reads, writes = descriptor in self._readers, descriptor in self._writers
        return (select.EPOLLIN if reads else 0) | (select.EPOLLOUT if writes else 0)

    def _go_on_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        try:
            for send in self._send_known:
                send()
            others_s = self._busy() - self._done_s
            until_s = self._seconds() + min(TURN_S_MAX, max(TURN_S, SHARE * others_s))
            while self._seconds() < until_s and self._serve_some(until_s):
                pass
        finally:
            self._done_s = self._busy()
            self._is_due = False
            if self._waiting:
                self._go_on_soon()

    def _serve_some(self, until_s: float) -> bool:
        """Some sockets, and as many that wait and one more: neither kind keeps the other from having a turn."""
        told, waiting = self._epoll.poll(0, ASKED_AT_ONCE), self._waiting
        if not told and not waiting:
            return False
        served = 0
        for descriptor, events in told:
            self._tell(descriptor, events)
            served += 1
            if self._seconds() >= until_s:
                break
        for _ in range(min(served + 1, len(waiting))):
            waiting.popleft()()
        return True

    def _tell(self, descriptor: int, events: int) -> None:
        if events & _READABLE and (read := self._readers.get(descriptor)) is not None:
            read()
        if events & _WRITABLE and (write := self._writers.get(descriptor)) is not None:
            write()
