"""What a broker does on its own, at intervals: retention, compaction, flushing, checkpoints, forgetting what has
expired.

Each duty is a plain method that takes the time, so that a test can call it; `start` has them called when they are due.
What blocks for long runs in the thread pool, and a duty that fails says so and is tried again the next time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor
from typing import TypeAlias

from moldau.broker.context import Services
from moldau.controller.settings.delegation_tokens import decide_remove_expired_tokens
from moldau.coordinator.long_work import in_slices
from moldau.core.errors import ApiError
from moldau.core.limits import DELEGATION_TOKENS_PER_SWEEP_MAX
from moldau.log.compaction.cleaner import Cleaner
from moldau.log.compaction.throttle import Throttle
from moldau.log.directories.offset_checkpoints import Checkpoints
from moldau.log.partition_log import PartitionLog
from moldau.replication.partition import Partition
from moldau.security.delegation_tokens import DelegationToken

LOGGER = logging.getLogger(__name__)

NEVER_MS = 2**63 - 1
TICK_MS = 1_000
COMPLETION_INTERVAL_MS = 3_000
Duty: TypeAlias = Callable[[int], "Awaitable[None] | None"]


class Housekeeping:
    def __init__(self, services: Services, executor: Executor) -> None:
        self._services = services
        self._executor = executor
        self._cleaner = Cleaner(
            memory_bytes=services.config.int("log.cleaner.dedupe.buffer.size"),
            throttle=Throttle(lambda: services.config.number("log.cleaner.io.max.bytes.per.second")),
            checkpointing=services.directories.checkpointing,
        )
        self._unflushed_since_ms: dict[PartitionLog, int] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin. Intervals are read anew each time, so that a dynamic change takes effect."""
        self._every(self._set("log.retention.check.interval.ms"), self.delete_old_segments)
        self._every(self._checkpoint_interval_ms, self.write_checkpoints)
        self._every(self._set("replica.high.watermark.checkpoint.interval.ms"), self.write_high_watermarks)
        self._every(self._set("producer.id.expiration.check.interval.ms"), self.expire_producers)
        self._every(self._set("log.cleaner.backoff.ms"), self.compact)
        if self._services.delegation_tokens is not None:
            self._every(self._set("delegation.token.expiry.check.interval.ms"), self.remove_expired_tokens)
        self._every(lambda: COMPLETION_INTERVAL_MS, self.complete)
        self._every(lambda: TICK_MS, self.flush_due)
        self._every(lambda: TICK_MS, self.remove_files)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def delete_old_segments(self, now_ms: int) -> None:
        async for partition in self._usable():
            stored = partition.log
            start = stored.log_start_offset
            try:
                if stored.delete_old_segments(now_ms, partition.high_watermark):
                    LOGGER.info("%s: now begins at %d, was %d", stored.partition, stored.log_start_offset, start)
            except ApiError as refused:
                LOGGER.error("%s: old segments could not be deleted: %s", stored.partition, refused)

    async def _usable(self) -> AsyncIterator[Partition]:
        """In slices, what is not in a log directory that is offline, and was not deleted in between."""
        partitions = self._services.partitions
        async for partition in in_slices([*partitions.all()], self._services.long_work):
            if partition.log.offline is None and partitions.get(partition.topic, partition.index) is partition:
                yield partition

    async def write_checkpoints(self, _: int) -> None:
        directories = self._services.directories
        pending = Checkpoints.of_directories(directories.usable_paths, directories.checkpointing)
        async for stored in in_slices(directories.logs(), self._services.long_work):
            pending.note(stored)
        await self._write(pending)

    async def write_high_watermarks(self, _: int) -> None:
        """What a follower may begin with. A lone broker leads all that it has, and commits it when it starts."""
        directories = self._services.directories
        if len(self._services.controller.image.brokers) == 1:
            return
        pending = Checkpoints.of_high_watermarks(
            directories.usable_paths, directories.checkpointing, directories.high_watermark
        )
        async for stored in in_slices(directories.logs(), self._services.long_work):
            pending.note(stored)
        await self._write(pending)

    async def _write(self, pending: Checkpoints) -> None:
        failures = await asyncio.get_running_loop().run_in_executor(self._executor, pending.write_all)
        for directory, failure in failures.items():
            LOGGER.error("log directory %s: checkpoints could not be written: %s", directory, failure.strerror)
            self._services.directories.fail(directory, failure)

    def complete(self, now_ms: int) -> None:
        """Make what there was no room for."""
        self._services.directories.look_for_room()
        self._services.reconciliation.complete(now_ms)

    async def expire_producers(self, now_ms: int) -> None:
        expiration_ms = self._services.config.int("producer.id.expiration.ms")
        async for partition in self._usable():
            partition.log.producers.expire(now_ms, expiration_ms)

    async def remove_expired_tokens(self, now_ms: int) -> None:
        """Of the whole cluster, by its controller. They log nobody in any more, and can't be renewed either."""
        controller = self._services.controller
        removed: list[DelegationToken] | None = None
        while removed is None or len(removed) == DELEGATION_TOKENS_PER_SWEEP_MAX:
            if not controller.is_active:
                return
            removed = await controller.write(lambda image: decide_remove_expired_tokens(image, now_ms))
            for token in removed:
                LOGGER.info("delegation token %s of %r has expired", token.id, str(token.owner))

    async def compact(self, now_ms: int) -> None:
        """Clean the dirtiest logs one after the other, until none is dirty enough."""
        if not self._services.config.flag("log.cleaner.enable"):
            return
        self._cleaner.memory_bytes = self._services.config.int("log.cleaner.dedupe.buffer.size")
        while await self._cleaner.clean_dirtiest(self._compactable(), now_ms):
            pass

    def _compactable(self) -> list[tuple[PartitionLog, int]]:
        """Not what is being copied to another log directory: a tombstone could go, while the copy has what it hides."""
        moves = self._services.moves
        return [
            (partition.log, partition.last_stable_offset)
            for partition in self._services.partitions.all()
            if partition.log.config.compact
            and partition.log.offline is None
            and (moves is None or moves.future_of(partition.log) is None)
        ]

    async def flush_due(self, _: int) -> None:
        """`flush.ms`, and segments that are full, for recovery to have less to read."""
        since, elapsed_ms = self._unflushed_since_ms, self._services.clock.elapsed_ms()
        for deleted in [stored for stored in since if stored.is_deleted]:
            del since[deleted]
        async for partition in self._usable():
            stored = partition.log
            if not stored.unflushed_records:
                since.pop(stored, None)
            elif (
                stored.config.flush_ms < NEVER_MS
                and elapsed_ms - since.setdefault(stored, elapsed_ms) >= stored.config.flush_ms
            ):
                since[stored] = elapsed_ms
                self._watch(self._services.flusher.flush(stored), stored)
            elif stored.active.base_offset > stored.recovery_point:
                self._watch(self._services.flusher.flush_rolled(stored), stored)

    async def remove_files(self, now_ms: int) -> None:
        due = self._services.directories.removals_due(now_ms)
        if due:
            await asyncio.get_running_loop().run_in_executor(self._executor, due)

    def _watch(self, flush: asyncio.Future[None] | None, stored: PartitionLog) -> None:
        def report(done: asyncio.Future[None]) -> None:
            if not done.cancelled() and (failure := done.exception()) is not None:
                LOGGER.error("%s: could not be flushed: %s", stored.partition, failure)

        if flush is not None:
            flush.add_done_callback(report)

    def _checkpoint_interval_ms(self) -> int:
        """Recovery points and log start offsets are written together, as often as the more frequent asks for."""
        config = self._services.config
        return min(
            config.int("log.flush.offset.checkpoint.interval.ms"),
            config.int("log.flush.start.offset.checkpoint.interval.ms"),
        )

    def _set(self, key: str) -> Callable[[], int]:
        return lambda: self._services.config.int(key)

    def _every(self, interval_ms: Callable[[], int], duty: Duty) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(self._repeat(interval_ms, duty)))

    async def _repeat(self, interval_ms: Callable[[], int], duty: Duty) -> None:
        while True:
            wait_ms = interval_ms()
            await asyncio.sleep((wait_ms if wait_ms > 0 else TICK_MS) / 1000)  # some keys allow 0, and less
            try:
                running = duty(self._services.clock.now_ms())
                if running is not None:
                    await running
            except (OSError, ApiError) as refused:
                LOGGER.error("%s failed; it is tried again later: %s", getattr(duty, "__name__", duty), refused)
            except Exception:
                LOGGER.exception("%s failed; it is tried again later", getattr(duty, "__name__", duty))
