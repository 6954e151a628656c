"""The partitions of an internal topic that this broker leads, each with a runtime, and their loading from the log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from moldau.coordinator.journal import CoordinatorRecord, Flush, PartitionJournal, StoredRecord
from moldau.coordinator.long_work import LongWork, Slice
from moldau.coordinator.runtime import Runtime, unwritten_facts
from moldau.core.clock import Clock
from moldau.core.decision import Decision
from moldau.core.errors import ApiError, ErrorCode, ProtocolViolation
from moldau.core.repeated_line import RepeatedLine
from moldau.replication.partition import Partition

REOPEN_S = 1.0  # until what could not be written or read is tried again: by then a full disk may have room
LOAD_BYTES = 64 * 1024  # read at once
LOADED_S_MAX = 2.0  # that a request waits for it: librdkafka sends most requests only twice more

LOGGER = logging.getLogger(__name__)


class Recoverable(Protocol):
    """A machine whose state can be read back."""

    def apply(self, fact: Any) -> None: ...

    def encode(self, fact: Any) -> CoordinatorRecord | None: ...

    def decode(self, stored: StoredRecord) -> Any | None:
        """The fact that a record states; None to pass over it, ProtocolViolation if it is damaged."""
        ...

    def decide_timer(self, key: Hashable, now_ms: int) -> Decision[None]: ...

    def decide_started(self, now_ms: int) -> Decision[None]:
        """What is to be done, timers above all, once the state is as the log has it."""
        ...


M = TypeVar("M", bound=Recoverable)


class Slot(Generic[M]):
    """A partition that this broker leads, and what it does about it."""

    __slots__ = ("is_loaded", "journal", "partition", "runtime", "tried")

    def __init__(self, partition: Partition, runtime: Runtime[M], journal: PartitionJournal) -> None:
        self.partition = partition
        self.runtime = runtime
        self.journal = journal
        self.is_loaded = False
        self.tried = asyncio.Event()  # whatever came of its loading


class Shards(Generic[M]):
    """Finds the runtime of a partition, and loads its state from the log first if there is any."""

    def __init__(
        self,
        make_machine: Callable[[], M],
        *,
        partition_of: Callable[[int], Partition | None],
        partition_count: Callable[[], int],
        clock: Clock,
        flush: Flush,
        long_work: LongWork,
        on_started: Callable[[Slot[M]], None] | None = None,
    ) -> None:
        self._make_machine = make_machine
        self._on_started = on_started
        self._partition_of = partition_of
        self._partition_count = partition_count
        self._clock = clock
        self._flush = flush
        self._long_work = long_work
        self._slots: dict[int, Slot[M]] = {}
        self._to_load: list[Slot[M]] = []
        self._loader: asyncio.Task[None] | None = None
        self._reopening: dict[int, asyncio.TimerHandle] = {}
        self._unwritten, self._unloaded = unwritten_facts(), RepeatedLine(LOGGER, logging.ERROR)

    @property
    def partition_count(self) -> int:
        return self._partition_count()

    def find(self, index: int) -> Runtime[M] | ErrorCode:
        """Ready for decisions, or why not."""
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

    async def loading_tried(self, index: int) -> None:
        """Wait for a partition that is being loaded, but not for long."""
        slot = self._slots.get(index)
        if slot is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOADED_S_MAX):
                    await slot.tried.wait()

    def all(self) -> list[Runtime[M]] | ErrorCode:
        """Every partition that holds anything, or why that can't be told."""
        found = [self.find(index) for index in self._in_use()]
        loading = [each for each in found if isinstance(each, ErrorCode)]
        return loading[0] if loading else [each for each in found if isinstance(each, Runtime)]

    def loaded(self) -> Iterator[Runtime[M]]:
        for slot in self._slots.values():
            if slot.is_loaded and not slot.runtime.is_stopped:
                yield slot.runtime

    def machines(self) -> Iterator[M]:
        """Also those that are being loaded."""
        for slot in self._slots.values():
            yield slot.runtime.machine

    def loading(self) -> Iterator[M]:
        """Those that are not what the log holds yet."""
        for slot in self._slots.values():
            if not slot.is_loaded and not slot.runtime.is_stopped:
                yield slot.runtime.machine

    def resume(self) -> None:
        """Begin to load what the logs hold. Partitions without any record wait until somebody needs them."""
        for index in self._in_use():
            self.find(index)

    def follow(self) -> None:
        """Begin to load what this broker leads by now, and let go of the state of what it no longer leads."""
        for index in [*self._slots]:
            self.find(index)
        self.resume()

    async def stop(self) -> None:
        for reopening in self._reopening.values():
            reopening.cancel()
        self._reopening.clear()
        if self._loader is not None:
            self._loader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._loader
        for slot in self._slots.values():
            slot.runtime.stop()

    def _in_use(self) -> Iterator[int]:
        for index in range(self._partition_count()):
            partition = self._partition_of(index)
            if partition is not None and partition.is_leader and (index in self._slots or partition.log.end_offset):
                yield index

    def _open(self, partition: Partition) -> Slot[M]:
        journal, index = PartitionJournal(partition, self._flush), partition.index
        runtime = Runtime(
            self._make_machine(),
            journal,
            clock=self._clock,
            long_work=self._long_work,
            on_failed=lambda: self._reopen_later(index),
            unwritten=self._unwritten,
        )
        slot = Slot(partition, runtime, journal)
        if journal.start_offset == journal.end_offset:
            self._begin(slot)
        else:
            self._to_load.append(slot)
            if self._loader is None:
                self._loader = asyncio.create_task(self._load_all(), name=f"loader of {partition.topic}")
        return slot

    def _reopen_later(self, index: int) -> None:
        """Timers and what they would end must not wait until somebody asks."""
        if index not in self._reopening:
            self._reopening[index] = asyncio.get_running_loop().call_later(REOPEN_S, self._reopen, index)

    def _reopen(self, index: int) -> None:
        del self._reopening[index]
        self.find(index)

    async def _load_all(self) -> None:
        try:
            while self._to_load:
                await self._load(self._to_load.pop(0))
        finally:
            self._loader = None

    async def _load(self, slot: Slot[M]) -> None:
        journal, offset = slot.journal, slot.journal.start_offset
        try:
            while offset < journal.end_offset and not slot.runtime.is_stopped:
                offset = await self._load_chunk(slot, offset)
            if not slot.runtime.is_stopped:
                self._begin(slot)
        except Exception as wrong:
            # There is another attempt soon, or when somebody asks; the other partitions are loaded meanwhile.
            is_refused = isinstance(wrong, ApiError | OSError)  # else it is a mistake of ours
            name = f"{slot.partition.topic}-{slot.partition.index}"
            self._unloaded.say(f"{name} can't be loaded: {wrong}", exc_info=None if is_refused else wrong)
            slot.runtime.stop()
            self._reopen_later(slot.partition.index)
        finally:
            slot.tried.set()

    async def _load_chunk(self, slot: Slot[M], offset: int) -> int:
        machine, loop = slot.runtime.machine, asyncio.get_running_loop()
        chunk = slot.journal.read(offset, LOAD_BYTES)
        await self._long_work.wait()
        turn = Slice(loop)
        for stored in chunk.records:
            if turn.is_over:
                await self._long_work.wait()
                turn = Slice(loop)
            try:
                fact = machine.decode(stored)
            except ProtocolViolation as wrong:
                LOGGER.error("a record of %s-%d is damaged: %s", slot.partition.topic, slot.partition.index, wrong)
                continue
            if fact is not None:
                machine.apply(fact)
        return chunk.next_offset

    def _begin(self, slot: Slot[M]) -> None:
        slot.is_loaded = True
        slot.runtime.loaded()
        slot.runtime.write(lambda machine, now_ms: machine.decide_started(now_ms), nobody_hears)
        if self._on_started is not None:
            self._on_started(slot)


def nobody_hears(_: ErrorCode) -> None:
    """The answer to those who do not listen."""
