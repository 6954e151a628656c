"""Whose requests are answered next, when there is more to do than one turn of the loop should take.

A client may send thousands of requests without waiting for an answer, or few that take long. A connection answers for
no longer than `SLICE_S` and then, if it has more, stands in a queue behind the others of its kind; the queue as a whole
has `TURN_S` of each turn of the loop. Whoever asks for little finds the loop free after that time, however many stand
in the queue.

Answers are sent when everybody who asked has had a turn, for each that is sent at once wakes its client in the middle
of the others' turns: a client with several connections reads them one by one then, and asks for one thing at a time.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic

SLICE_S = 0.0005  # a producer's usual five requests in flight fit into it
TURN_S = 0.0005
ANSWERS_HELD_S = 0.0005  # as long as eight busy producers take; who has to wait for more is answered in between
LONG_S = 0.002  # whoever took this long for one turn begins the next one in the queue


class Turns:
    """The queue of one listener's connections that have more to do."""

    __slots__ = ("_answered", "_held_since_s", "_is_due", "_loop", "_waiting")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_due = False
        self._answered: list[Callable[[], None]] = []
        self._held_since_s = 0.0

    @property
    def slice_s(self) -> float:
        """How long a connection may answer that comes from the queue; one request at least, whatever this says."""
        return TURN_S / (1 + len(self._waiting))

    def queue(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` when it is its turn, never at once."""
        self._waiting.append(go_on)
        self._go_on_soon()

    def send_soon(self, send: Callable[[], None], now_s: float) -> None:
        """Call `send` when all others who can be read from now have had their turn, or when that takes too long."""
        answered = self._answered
        if not answered:
            self._held_since_s = now_s
            self._loop.call_soon(self._send)
        answered.append(send)
        if now_s - self._held_since_s >= ANSWERS_HELD_S:
            self._send()

    def send_now(self) -> None:
        """What was answered until now, before others have a turn who may take long."""
        if self._answered:
            self._send()

    def _send(self) -> None:
        answered, self._answered = self._answered, []
        self._send_all(iter(answered))

    def _send_all(self, answered: Iterator[Callable[[], None]]) -> None:
        try:
            for send in answered:
                send()
        except BaseException:
            self._loop.call_soon(self._send_all, answered)
            raise

    def _go_on_soon(self) -> None:
        if self._waiting and not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        until_s = monotonic() + TURN_S
        try:
            for _ in range(len(self._waiting)):  # each once: whoever queues again meanwhile is for the next turn
                self._waiting.popleft()()
                if monotonic() >= until_s:
                    break
        finally:
            self._is_due = False
            self._go_on_soon()
