"""Requests that wait for a partition to grow, and the moment they stop waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Set
from typing import Any

from moldau.broker.requests.delayed_response import DelayedResponse
from moldau.replication.partition import Partition
from moldau.replication.watcher import Watchers


class DelayedFetch:
    """A Fetch that found too little. It is tried again when enough bytes came, or something else changed, or too late.

    `attempt(is_last, grown)` gives the answer, perhaps one that has to be waited for, or None to go on waiting. It runs
    on the next turn of the loop, so that the Produce which caused it is answered first. `grown` are the partitions that
    grew since the Fetch was parked; None means that anything may have changed.

    `watched` are those who wait for what the Fetch may read: a consumer for what is committed, a follower for more.
    """

    __slots__ = ("_attempt", "_deadline", "_grown", "_loop", "_missing_bytes", "_scheduled", "_watched", "answer")

    def __init__(
        self,
        watched: Iterable[Watchers],
        attempt: Callable[[bool, Set[Partition] | None], Any | None],
        *,
        missing_bytes: int,
        wait_ms_max: int,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._watched = tuple(watched)
        self._attempt = attempt
        self._missing_bytes = missing_bytes
        self._scheduled = False
        self._grown: set[Partition] | None = set()
        self.answer: DelayedResponse[Any] = DelayedResponse(self._leave)
        self._deadline = self._loop.call_later(wait_ms_max / 1000, self._try, True)
        for watchers in self._watched:
            watchers[self] = None

    def grown(self, partition: Partition, size_bytes: int) -> None:
        if self._grown is not None:
            self._grown.add(partition)
        self._missing_bytes -= size_bytes
        if self._missing_bytes <= 0:
            self._schedule()

    def came_before(self, size_bytes: int) -> None:
        """What was found that came before this watched. Some may be counted twice, and then it is told too early."""
        self._missing_bytes -= size_bytes
        if self._missing_bytes <= 0:
            self._schedule()

    def disturbed(self) -> None:
        self._grown = None
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._try, False)

    def _try(self, is_last: bool) -> None:
        self._scheduled = False
        if self.answer.done():
            self._leave()
            return
        try:
            found = self._attempt(is_last, None if is_last else self._grown)
        except Exception as wrong:  # handed to whoever waits for the answer
            self._leave()
            self.answer.set_exception(wrong)
            return
        if found is None:
            return
        self._leave()
        if isinstance(found, DelayedResponse):
            self.answer.follow(found)
        else:
            self.answer.set_result(found)

    def _leave(self) -> None:
        self._deadline.cancel()
        for watchers in self._watched:
            watchers.pop(self, None)
