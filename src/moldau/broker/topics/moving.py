"""Replicas on their way from one log directory of this broker to another.

Each is copied while it serves, one at a time, and the copy takes its place in the moment in which it lacks nothing. A
replica that is truncated meanwhile is copied anew; one that leaves this broker moves no more.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from moldau.core.errors import ApiError
from moldau.core.ids import TopicPartition
from moldau.log.directories.future_log import create_future, forget_source, next_piece
from moldau.log.directories.offset_checkpoints import forget_offsets
from moldau.replication.partition import Partition
from moldau.replication.throttle import UNLIMITED, Throttle

if TYPE_CHECKING:
    from moldau.broker.context import Services
    from moldau.log.partition_log import PartitionLog

LOGGER = logging.getLogger(__name__)

PIECE_BYTES = 1_048_576  # some milliseconds of the loop, which checks and writes them
UNSYNCED_BYTES_MAX = 4 * PIECE_BYTES  # more than this is synced by a thread before the loop syncs the rest
THROTTLED_S = 0.1
T = TypeVar("T")
RATE_KEY = "replica.alter.log.dirs.io.max.bytes.per.second"


@dataclass(slots=True, eq=False)
class Move:
    partition: Partition
    source: PartitionLog
    target: str
    future: PartitionLog | None = None
    task: asyncio.Task[None] | None = None


class OnTheWay(NamedTuple):
    """How much of a replica is at the log directory that it moves to."""

    target: str
    size_bytes: int
    end_offset: int


class ReplicaMoves:
    """Owned by one event loop."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._moves: dict[TopicPartition, Move] = {}
        self._turn = asyncio.Lock()
        config = services.config
        self._throttle = Throttle(
            self._rate,
            lambda _: True,
            samples=config.int("alter.log.dirs.replication.quota.window.num"),
            sample_ms=1_000 * config.int("alter.log.dirs.replication.quota.window.size.seconds"),
        )

    def begin(self, partition: Partition, target: str) -> None:
        """Move a replica, or let it stay if it is there already; what was asked for before counts no more."""
        source = partition.log
        before = self._moves.get(source.partition)
        if before is not None and before.source is source and before.target == target:
            return
        self._end(before)
        if os.path.dirname(source.path) != target:
            move = self._moves[source.partition] = Move(partition, source, target)
            move.task = asyncio.get_running_loop().create_task(self._run(move), name="move-replica")

    def future_of(self, log: PartitionLog) -> PartitionLog | None:
        """The copy that is being made of a log."""
        move = self._moves.get(log.partition)
        return None if move is None or move.source is not log else move.future

    def way_of(self, log: PartitionLog) -> OnTheWay | None:
        """Where a log moves to, be it that others are moved before it."""
        move = self._moves.get(log.partition)
        if move is None or move.source is not log:
            return None
        if move.future is None:
            return OnTheWay(move.target, 0, log.log_start_offset)
        return OnTheWay(move.target, move.future.size_bytes(), move.future.end_offset)

    async def stop(self) -> None:
        tasks = [move.task for move in self._moves.values() if move.task is not None]
        for move in [*self._moves.values()]:
            self._end(move)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self, move: Move | None) -> None:
        if move is not None and move.task is not None:
            self._moves.pop(move.source.partition, None)
            move.task.cancel()

    async def _run(self, move: Move) -> None:
        name, source = move.source.partition, move.source
        try:
            async with self._turn:
                while self._is_due(move) and not await self._copied(move):
                    pass
            if move.partition.log is not source:
                LOGGER.info("%s was moved from %s to %s", name, os.path.dirname(source.path), move.target)
        except (ApiError, OSError) as refused:
            LOGGER.error("%s could not be moved to %s and stays where it is: %s", name, move.target, refused)
        except Exception:
            LOGGER.exception("%s could not be moved to %s and stays where it is", name, move.target)
        finally:
            if self._moves.get(name) is move:
                del self._moves[name]

    def _is_due(self, move: Move) -> bool:
        """Whether the log is still that of a replica which serves here, and both log directories can be used."""
        source, services = move.source, self._services
        return (
            move.partition.log is source
            and services.partitions.get(*source.partition) is move.partition
            and source.offline is None
            and move.target in services.directories.usable_paths
        )

    async def _copied(self, move: Move) -> bool:
        """Whether a copy has taken the log's place; if not, another one may be begun."""
        services, source, target = self._services, move.source, move.target
        await self._in_thread(forget_offsets, target, {source.partition}, services.directories.checkpointing)
        if not self._is_due(move):
            return False
        truncations, clean_to = source.truncations, source.clean_to
        future = move.future = create_future(source, target, now_ms=services.clock.now_ms())
        future.on_failure = partial(services.directories.fail, target)
        try:
            await self._fill(move, future, truncations)
            if not self._is_due(move) or source.truncations != truncations or future.end_offset != source.end_offset:
                return False
            future.clean_to = clean_to
            services.directories.replace(source, future)
            move.partition.log = future
        finally:
            move.future = None
            if move.partition.log is not future:
                services.directories.discard(future)
        await self._settle(source, future)
        return True

    async def _fill(self, move: Move, future: PartitionLog, truncations: int) -> None:
        """Until the copy has everything, in one turn of the loop, or can't become what the log is by now."""
        services, source, unsynced_bytes = self._services, move.source, 0
        while self._is_due(move) and source.truncations == truncations:
            now_ms = services.clock.now_ms()
            if future.end_offset == source.end_offset:
                if unsynced_bytes <= UNSYNCED_BYTES_MAX:
                    return
                unsynced_bytes = 0
                await services.flusher.flush(future)
                continue
            if self._throttle.is_exceeded(services.clock.elapsed_ms()):
                await asyncio.sleep(THROTTLED_S)
                continue
            piece = next_piece(source, future, bytes_max=PIECE_BYTES, now_ms=now_ms)
            if not piece:
                continue
            try:
                records = await self._in_thread(piece.read)
            except OSError:
                if source.truncations == truncations:
                    raise
                return
            if source.truncations == truncations:
                future.append_as_follower(memoryview(records), now_ms=now_ms)
            self._throttle.record(len(records), services.clock.elapsed_ms())
            unsynced_bytes += len(records)

    async def _settle(self, source: PartitionLog, future: PartitionLog) -> None:
        """Write down what is known of the log where it is now, and forget where it was."""
        directories, target = self._services.directories, os.path.dirname(future.path)
        await self._in_thread(directories.checkpoints().write, target)
        await self._in_thread(forget_source, source, future)

    def _rate(self) -> int:
        """Set while brokers run, as the rates of replication are."""
        services = self._services
        image = services.controller.image
        text = image.broker_config(str(services.broker_id)).get(RATE_KEY) or image.broker_config("").get(RATE_KEY) or ""
        return int(text) if text.isdecimal() else UNLIMITED

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._services.executor, work, *arguments)
