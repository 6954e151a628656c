"""The groups that this broker coordinates: one runtime for each partition of `__consumer_offsets` that it leads."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from asyncio import Future
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

from moldau.coordinator.journal import PartitionJournal
from moldau.coordinator.runtime import Runtime
from moldau.core.clock import Clock
from moldau.core.decision import Decision, Parked
from moldau.core.errors import ApiError, ErrorCode, ProtocolViolation
from moldau.groups.limits import GroupLimits
from moldau.groups.placement import partition_for
from moldau.groups.shard import GroupShard
from moldau.replication.partition import Partition

LOAD_BYTES = 64 * 1024  # read and applied in one go, some milliseconds during which the loop does nothing else

R = TypeVar("R")

log = logging.getLogger(__name__)


class Slot:
    """A partition that this broker leads, and what it does about it."""

    __slots__ = ("is_loaded", "journal", "partition", "runtime")

    def __init__(self, partition: Partition, runtime: Runtime[GroupShard], journal: PartitionJournal) -> None:
        self.partition = partition
        self.runtime = runtime
        self.journal = journal
        self.is_loaded = False


class GroupCoordinator:
    """Finds the runtime of a group, and loads its state from the log first if there is any."""

    def __init__(
        self,
        *,
        partition_of: Callable[[int], Partition | None],
        partition_count: Callable[[], int],
        limits: GroupLimits,
        clock: Clock,
    ) -> None:
        self._partition_of = partition_of
        self._partition_count = partition_count
        self._limits = limits
        self._clock = clock
        self._slots: dict[int, Slot] = {}
        self._to_load: list[Slot] = []
        self._loader: asyncio.Task[None] | None = None

    def index_of(self, group_id: str) -> int:
        return partition_for(group_id, self._partition_count())

    def write(
        self,
        group_id: str,
        decide: Callable[[GroupShard, int], Decision[R | Parked]],
        failed: Callable[[ErrorCode], R],
    ) -> R | Future[R]:
        """The reply of a decision about a group, or the answer that `failed` makes of an error."""
        runtime = self._find(self.index_of(group_id))
        return failed(runtime) if isinstance(runtime, ErrorCode) else runtime.write(decide, failed)

    def shards(self) -> list[GroupShard] | ErrorCode:
        """All that is known here, or why that can't be told."""
        found = [self._find(index) for index in self._led()]
        loading = [each for each in found if isinstance(each, ErrorCode)]
        return loading[0] if loading else [each.machine for each in found if isinstance(each, Runtime)]

    def resume(self) -> None:
        """Begin to load what the logs hold. Partitions without any record wait until somebody needs them."""
        for index in self._led():
            self._find(index)

    def topics_deleted(self, topics: Collection[str]) -> None:
        for slot in self._slots.values():
            if slot.is_loaded and not slot.runtime.is_stopped:
                slot.runtime.write(lambda shard, _: shard.decide_topics_deleted(topics), _nobody_hears)

    async def stop(self) -> None:
        if self._loader is not None:
            self._loader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._loader
        for slot in self._slots.values():
            slot.runtime.stop()

    def _led(self) -> Iterator[int]:
        for index in range(self._partition_count()):
            partition = self._partition_of(index)
            if partition is not None and partition.is_leader and (index in self._slots or partition.log.end_offset):
                yield index

    def _find(self, index: int) -> Runtime[GroupShard] | ErrorCode:
        slot = self._slots.get(index)
        partition = self._partition_of(index)
        if slot is not None and (slot.partition is not partition or slot.runtime.is_stopped):
            slot.runtime.stop()
            del self._slots[index]
            slot = None
        if partition is None or not partition.is_leader:
            return ErrorCode.NOT_COORDINATOR
        if slot is None:
            slot = self._slots[index] = self._open(partition)
        return slot.runtime if slot.is_loaded else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def _open(self, partition: Partition) -> Slot:
        journal = PartitionJournal(partition)
        slot = Slot(partition, Runtime(GroupShard(self._limits), journal, clock=self._clock), journal)
        if journal.start_offset == journal.end_offset:
            self._begin(slot)
        else:
            self._to_load.append(slot)
            if self._loader is None:
                self._loader = asyncio.create_task(self._load_all(), name="group-loader")
        return slot

    async def _load_all(self) -> None:
        try:
            while self._to_load:
                await self._load(self._to_load.pop(0))
        finally:
            self._loader = None

    async def _load(self, slot: Slot) -> None:
        journal, offset = slot.journal, slot.journal.start_offset
        try:
            while offset < journal.committed_offset and not slot.runtime.is_stopped:
                offset = self._load_chunk(slot, offset)
                await asyncio.sleep(0)
        except (ApiError, OSError) as wrong:
            log.error("groups of %s-%d can't be loaded: %s", slot.partition.topic, slot.partition.index, wrong)
            slot.runtime.stop()
            return
        if not slot.runtime.is_stopped:
            self._begin(slot)

    def _load_chunk(self, slot: Slot, offset: int) -> int:
        shard = slot.runtime.machine
        chunk = slot.journal.read(offset, LOAD_BYTES)
        for record in chunk.records:
            try:
                value = None if record.value is None else memoryview(record.value)
                fact = None if record.key is None else shard.decode(memoryview(record.key), value)
            except ProtocolViolation as wrong:
                log.error("a record of %s-%d is damaged: %s", slot.partition.topic, slot.partition.index, wrong)
                continue
            if fact is not None:
                shard.apply(fact)
        return chunk.next_offset

    def _begin(self, slot: Slot) -> None:
        slot.is_loaded = True
        slot.runtime.write(lambda shard, now_ms: shard.decide_started(now_ms), _nobody_hears)


def _nobody_hears(_: ErrorCode) -> None:
    return None
