"""One page of metrics out of what many writers add, in slices, and never more often than the broker can afford."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic, perf_counter
from typing import TypeAlias

from moldau.coordinator.long_work import LongWork, in_slices
from moldau.core.exposition import COUNTER, Exposition
from moldau.core.repeated_line import RepeatedLine

LOGGER = logging.getLogger(__name__)

REST = 4  # times as long as a collection took pass before the next one: scrapers get a fifth of the loop at most

Writer: TypeAlias = Callable[[Exposition], "Awaitable[None] | None"]
"""Adds metrics. One that has much to add is a coroutine that goes in slices."""

Page: TypeAlias = Sequence[bytes]


class Collector:
    """Owned by one event loop. Whoever asks gets a page that was begun after they asked, shared with others."""

    def __init__(self, long_work: LongWork) -> None:
        self.writers: list[Writer] = [self._write_own]
        self._long_work = long_work
        self._next: asyncio.Task[Page] | None = None
        self._running: asyncio.Task[Page] | None = None
        self._not_before_s = 0.0
        self._failed = RepeatedLine(LOGGER, logging.ERROR)
        self._failures = 0
        self._took_s = 0.0

    async def page(self) -> Page:
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._collect(self._running), name="metrics")
        return await asyncio.shield(self._next)

    async def stop(self) -> None:
        tasks = [task for task in (self._next, self._running) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _collect(self, before: asyncio.Task[Page] | None) -> Page:
        if before is not None:
            await asyncio.wait([before])
        await asyncio.sleep(max(0.0, self._not_before_s - monotonic()))
        self._running, self._next = self._next, None
        began_s = perf_counter()
        try:
            out = Exposition()
            for write in tuple(self.writers):
                await self.add(write, out)
            return [block async for block in in_slices(out.blocks(), self._long_work)]
        finally:
            self._took_s = perf_counter() - began_s
            self._not_before_s = monotonic() + REST * self._took_s
            self._running = None

    async def add(self, write: Writer, out: Exposition) -> None:
        """A writer that fails leaves its own metrics out, and nobody else's."""
        try:
            writing = write(out)
            if writing is not None:
                await writing
        except Exception as wrong:
            self._failures += 1
            self._failed.say(f"metrics are left out: {wrong!r}", exc_info=wrong)

    def _write_own(self, out: Exposition) -> None:
        out.add("moldau_metrics_collection_seconds", "How long the last collection of metrics took.", {}, self._took_s)
        help_text = "Parts of collections that failed, whose metrics were left out."
        out.add("moldau_metrics_failures_total", help_text, {}, self._failures, COUNTER)
