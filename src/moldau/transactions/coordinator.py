"""The transactional ids that this broker coordinates: those whose partition of `__transaction_state` it leads."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import Future
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Set
from typing import Any, TypeVar

from moldau.coordinator.journal import Flush
from moldau.coordinator.long_work import LongWork
from moldau.coordinator.placement import partition_for
from moldau.coordinator.runtime import Runtime
from moldau.coordinator.shards import Shards, Slot
from moldau.core.clock import Clock
from moldau.core.decision import Decision, Delayed
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import ProducerId, TopicPartition
from moldau.replication.partition import Partition
from moldau.transactions.endings import Ending
from moldau.transactions.limits import TransactionLimits
from moldau.transactions.marker_sender import MarkerSender, WriteMarker
from moldau.transactions.producers import Initialising
from moldau.transactions.shard import TransactionShard
from moldau.transactions.transaction import SECOND_PROTOCOL, ProducerIdAndEpoch, ProducerReply

R = TypeVar("R")


class TransactionCoordinator:
    def __init__(
        self,
        *,
        partition_of: Callable[[int], Partition | None],
        partition_count: Callable[[], int],
        limits: TransactionLimits,
        clock: Clock,
        flush: Flush,
        long_work: LongWork | None = None,
        next_producer_id: Callable[[], Awaitable[ProducerId]],
        write_marker: WriteMarker,
    ) -> None:
        self._limits = limits
        self._next_producer_id = next_producer_id
        self._write_marker = write_marker
        self._tasks: dict[asyncio.Task[None], None] = {}  # ended in the order in which they began
        self._shards = Shards(
            lambda: TransactionShard(self._limits),
            partition_of=partition_of,
            partition_count=partition_count,
            clock=clock,
            flush=flush,
            long_work=long_work or LongWork(),
            on_started=self._started,
        )

    def index_of(self, transactional_id: str) -> int:
        return partition_for(transactional_id, self._shards.partition_count)

    def limit(self, limits: TransactionLimits) -> None:
        """What is allowed from now on."""
        self._limits = limits
        for shard in self._shards.machines():
            shard.limits = limits

    def write(
        self,
        transactional_id: str,
        decide: Callable[[TransactionShard, int], Decision[R | Delayed]],
        failed: Callable[[ErrorCode], R],
    ) -> R | Future[R]:
        """The reply of a decision about a transactional id, or the answer that `failed` makes of an error."""
        runtime = self._shards.find(self.index_of(transactional_id))
        return failed(runtime) if isinstance(runtime, ErrorCode) else runtime.write(decide, failed)

    async def init_producer_id(self, request: Initialising) -> ProducerReply:
        def decide(shard: TransactionShard, spare_id: ProducerId | None, now_ms: int) -> Decision[ProducerReply]:
            return shard.decide_init_producer_id(request, spare_id=spare_id, now_ms=now_ms)

        return await self._write_with_spare(request.transactional_id, decide, creates=True)

    async def end_txn(self, request: Ending) -> ProducerReply:
        def decide(shard: TransactionShard, spare_id: ProducerId | None, now_ms: int) -> Decision[ProducerReply]:
            return shard.decide_end_txn(request, spare_id=spare_id, now_ms=now_ms)

        return await self._write_with_spare(request.transactional_id, decide, creates=False)

    async def _write_with_spare(
        self,
        transactional_id: str,
        decide: Callable[[TransactionShard, ProducerId | None, int], Decision[ProducerReply]],
        *,
        creates: bool,
    ) -> ProducerReply:
        """Decide with a producer id that nobody has yet, if one may be needed."""
        runtime = self._shards.find(self.index_of(transactional_id))
        if isinstance(runtime, ErrorCode):
            return ProducerReply(runtime)
        spare_id = None
        is_known = transactional_id in runtime.machine.transactions
        if (creates or is_known) and runtime.machine.needs_producer_id(transactional_id):
            try:
                spare_id = await self._next_producer_id()
            except ApiError as wrong:
                return ProducerReply(wrong.code)
            if runtime.is_stopped:
                return ProducerReply(ErrorCode.NOT_COORDINATOR)
        reply = runtime.write(lambda shard, now_ms: decide(shard, spare_id, now_ms), ProducerReply)
        self._stock(runtime, [transactional_id])
        return await reply if isinstance(reply, Future) else reply

    def admit(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Set[TopicPartition], *, adds: bool
    ) -> Mapping[TopicPartition, ErrorCode] | Future[Mapping[TopicPartition, ErrorCode]]:
        """Whether a producer may write to partitions, which `adds` makes part of its transaction.

        An answer that is here at once is for now: an end of the transaction that comes before the write would leave it
        open for ever. Whoever has to wait, for other replicas or the disk, guards against a marker in between.
        """

        def all_of(error: ErrorCode) -> Mapping[TopicPartition, ErrorCode]:
            return dict.fromkeys(partitions, error)

        def decide(shard: TransactionShard, now_ms: int) -> Decision[Mapping[TopicPartition, ErrorCode]]:
            if not adds:
                return Decision.reply_only(shard.verify_partitions(transactional_id, producer, partitions))
            added = shard.decide_add_partitions(
                transactional_id, producer, partitions, client_version=SECOND_PROTOCOL, now_ms=now_ms
            )
            return added.shaped(all_of)

        runtime = self._shards.find(self.index_of(transactional_id))
        if isinstance(runtime, ErrorCode):
            return all_of(runtime)
        if not adds and not runtime.is_ahead:
            return runtime.machine.verify_partitions(transactional_id, producer, partitions)
        return runtime.write(decide, all_of, at_once=True)

    def loaded(self) -> list[TransactionShard]:
        """What is known here so far."""
        return [runtime.machine for runtime in self._shards.loaded()]

    def shards(self) -> list[TransactionShard] | ErrorCode:
        """All that is known here, or why that can't be told."""
        found = self._shards.all()
        return found if isinstance(found, ErrorCode) else [runtime.machine for runtime in found]

    def resume(self) -> None:
        """Begin to load what is there from before; markers that are still due are written then."""
        self._shards.resume()

    def follow_leadership(self) -> None:
        """Take over what this broker leads by now, and let go of what it no longer leads."""
        self._shards.follow()

    async def stop(self) -> None:
        await self._shards.stop()
        for task in tuple(self._tasks):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _started(self, slot: Slot[TransactionShard]) -> None:
        marking = MarkerSender(
            slot.runtime, coordinator_epoch=slot.partition.leader_epoch, write_marker=self._write_marker
        )
        self._spawn(marking.run(), f"markers of {slot.partition.topic}-{slot.partition.index}")
        self._stock(slot.runtime, slot.runtime.machine.transactions)

    def _stock(self, runtime: Runtime[TransactionShard], transactional_ids: Iterable[str]) -> None:
        """Have a producer id ready where a time-out can't wait for one."""
        if runtime.machine.wants_spare_id(transactional_ids):
            self._spawn(self._fetch_spare(runtime.machine), "spare producer id")

    async def _fetch_spare(self, shard: TransactionShard) -> None:
        with contextlib.suppress(ApiError):  # the time-out waits, and the next request tries again
            shard.spare_id = await self._next_producer_id()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
