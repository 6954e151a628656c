"""Many timers on one clock: setting one is a dict entry, because a heartbeat moves one and hardly any ever fires."""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Hashable
from heapq import heapify, heappop, heappush
from itertools import count

from moldau.coordinator.long_work import LongWork, Slice

STALE_MIN = 1_000  # entries of the queue without a timer, below which they are not worth going through all of it


class Timers:
    """One timer per key. `fire(key)` is called once, after the timer's time and when there is a turn for it."""

    __slots__ = ("_deadlines", "_fire", "_handle", "_heap", "_long_work", "_loop", "_numbers", "_queued")

    def __init__(self, loop: AbstractEventLoop, fire: Callable[[Hashable], None], long_work: LongWork) -> None:
        self._loop = loop
        self._fire = fire
        self._long_work = long_work
        self._deadlines: dict[Hashable, float] = {}
        self._queued: dict[Hashable, float] = {}  # when the queue looks at a key next: at its deadline or before
        self._heap: list[tuple[float, int, Hashable]] = []
        self._numbers = count()
        self._handle: TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._deadlines)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._deadlines

    def set(self, key: Hashable, delay_ms: int) -> None:
        """Measured on the loop's clock, which no correction of the wall clock moves."""
        deadline_s = self._loop.time() + delay_ms / 1000
        self._deadlines[key] = deadline_s
        queued_s = self._queued.get(key)
        if queued_s is None or deadline_s < queued_s:
            self._enqueue(key, deadline_s)

    def cancel(self, key: Hashable) -> None:
        if self._deadlines.pop(key, None) is not None and len(self._heap) > 2 * len(self._deadlines) + STALE_MIN:
            self._drop_stale()

    def _drop_stale(self) -> None:
        """More than half of the queue is cancelled; without this it would stay until its time comes."""
        deadlines, queued = self._deadlines, self._queued
        self._heap = [entry for entry in self._heap if entry[2] in deadlines and queued[entry[2]] == entry[0]]
        heapify(self._heap)
        self._queued = {key: at_s for key, at_s in queued.items() if key in deadlines}

    def clear(self) -> None:
        self._deadlines.clear()
        self._queued.clear()
        self._heap.clear()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _enqueue(self, key: Hashable, at_s: float) -> None:
        self._queued[key] = at_s
        heappush(self._heap, (at_s, next(self._numbers), key))
        if self._heap[0][2] is key:
            self._arm()

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self._loop.call_at(self._heap[0][0], self._wake) if self._heap else None

    def _wake(self) -> None:
        self._handle = None
        self._long_work.call(self._fire_due)

    def _fire_due(self) -> None:
        """Until the slice is over: a timer that has to wait for the next one can still be moved or cancelled."""
        turn = Slice(self._loop)
        now_s, latest = self._loop.time(), next(self._numbers)
        while self._heap and self._heap[0][0] <= now_s and self._heap[0][1] < latest:
            if turn.is_over:
                self._long_work.call(self._fire_due)
                return
            key = self._pop(now_s)
            if key is not None:
                self._fire(key)
        self._arm()

    def _pop(self, now_s: float) -> Hashable | None:
        """The first key of the queue, if its time is up."""
        at_s, _, key = heappop(self._heap)
        if self._queued.get(key) != at_s:
            return None  # it was moved to an earlier time, and looked at then
        del self._queued[key]
        deadline_s = self._deadlines.get(key)
        if deadline_s is None:
            return None
        if deadline_s > now_s:
            self._queued[key] = deadline_s
            heappush(self._heap, (deadline_s, next(self._numbers), key))
            return None
        del self._deadlines[key]
        return key
