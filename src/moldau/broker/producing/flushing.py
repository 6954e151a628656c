"""Group fsync: whoever waits for the same log shares one call, which runs outside the event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from functools import partial

from moldau.log.errors import LogError
from moldau.log.partition_log import FlushPoint, PartitionLog


class Flusher:
    """At most one fsync per log runs; those who ask meanwhile get the next one, which covers them all."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._running: set[PartitionLog] = set()
        self._next: dict[PartitionLog, asyncio.Future[None]] = {}

    def flush(self, log: PartitionLog) -> asyncio.Future[None]:
        """Done when all that the log holds at this moment is on the disk; LogError when it could not be written.

        Each caller gets a future of its own: one that goes away and cancels it leaves the others theirs.
        """
        if log not in self._running:
            return asyncio.shield(self._start(log, log.flush_point()))
        waiting = self._next.get(log)
        if waiting is None:
            waiting = self._next[log] = asyncio.get_running_loop().create_future()
        return asyncio.shield(waiting)

    def flush_rolled(self, log: PartitionLog) -> asyncio.Future[None] | None:
        """The same for full segments alone, in the background; None when a flush is under way anyway."""
        if log in self._running:
            return None
        return self._start(log, log.flush_point(rolled_only=True))

    def _start(
        self, log: PartitionLog, point: FlushPoint, done: asyncio.Future[None] | None = None
    ) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        done = loop.create_future() if done is None else done
        self._running.add(log)
        work = loop.run_in_executor(self._executor, point.sync)
        work.add_done_callback(partial(self._finished, log, point, done))
        return done

    def _finished(
        self, log: PartitionLog, point: FlushPoint, done: asyncio.Future[None], work: asyncio.Future[None]
    ) -> None:
        self._running.discard(log)
        if work.cancelled():
            done.cancel()
        elif (failure := work.exception()) is None:
            log.flushed(point)
            done.set_result(None)
        else:
            done.set_exception(log.flush_failed(failure) if isinstance(failure, OSError) else failure)
            done.exception()  # a flush in the background has nobody who asks
        waiting = self._next.pop(log, None)
        if waiting is not None:
            self._start_next(log, waiting)

    def _start_next(self, log: PartitionLog, waiting: asyncio.Future[None]) -> None:
        try:
            self._start(log, log.flush_point(), waiting)
        except LogError as refused:  # the flush before it took the log offline
            waiting.set_exception(refused)
