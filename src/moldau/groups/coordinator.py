"""The groups that this broker coordinates: those whose partition of `__consumer_offsets` it leads."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from moldau.controller.image import ClusterImage
from moldau.coordinator.journal import Flush, TransactionalProducer
from moldau.coordinator.long_work import LongWork, Slice
from moldau.coordinator.placement import partition_for
from moldau.coordinator.runtime import Runtime
from moldau.coordinator.shards import Shards, Slot, nobody_hears
from moldau.core.clock import Clock
from moldau.core.decision import Decision, Delayed
from moldau.core.errors import ErrorCode
from moldau.groups.classic import membership
from moldau.groups.classic.group import Group
from moldau.groups.consumer.topics import Topics
from moldau.groups.limits import ConsumerGroupConfig, GroupLimits
from moldau.groups.offsets.classic import Committing
from moldau.groups.shard import GroupShard
from moldau.replication.partition import Partition

R = TypeVar("R")


class GroupCoordinator:
    def __init__(
        self,
        *,
        partition_of: Callable[[int], Partition | None],
        partition_count: Callable[[], int],
        limits: GroupLimits,
        clock: Clock,
        flush: Flush,
        long_work: LongWork | None = None,
        config_of: Callable[[str], ConsumerGroupConfig] = lambda _: ConsumerGroupConfig(),
    ) -> None:
        self._clock = clock
        self._long_work = long_work or LongWork()
        self._topics = Topics()
        self.config_of = config_of
        """May be replaced until groups are loaded. It is asked anew with every decision."""
        self._shards = Shards(
            lambda: GroupShard(limits, config_of=self.config_of, topics=lambda: self._topics),
            partition_of=partition_of,
            partition_count=partition_count,
            clock=clock,
            flush=flush,
            long_work=self._long_work,
            on_started=self._started,
        )
        self._gone: dict[GroupShard, Mapping[str, bytes]] = {}
        """Topics that were deleted while a shard was loaded, with their ids."""

    def index_of(self, group_id: str) -> int:
        return partition_for(group_id, self._shards.partition_count)

    def write(
        self,
        group_id: str,
        decide: Callable[[GroupShard, int], Decision[R | Delayed]],
        failed: Callable[[ErrorCode], R],
    ) -> R | Future[R]:
        """The reply of a decision about a group, or the answer that `failed` makes of an error.

        A group that is being loaded is waited for a while: some clients try again too few times.
        """
        index = self.index_of(group_id)
        runtime = self._shards.find(index)
        if runtime is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return asyncio.ensure_future(self._write_when_loaded(index, decide, failed))
        return failed(runtime) if isinstance(runtime, ErrorCode) else runtime.write(decide, failed)

    async def _write_when_loaded(
        self,
        index: int,
        decide: Callable[[GroupShard, int], Decision[R | Delayed]],
        failed: Callable[[ErrorCode], R],
    ) -> R:
        await self._shards.loading_tried(index)
        runtime = self._shards.find(index)
        if isinstance(runtime, ErrorCode):
            return failed(runtime)
        reply = runtime.write(decide, failed)
        return await reply if isinstance(reply, Future) else reply

    def commit_in_transaction(
        self, committing: Committing, producer: TransactionalProducer
    ) -> list[ErrorCode] | Future[list[ErrorCode]]:
        """One answer for each partition. The caller has made sure that the transaction is open."""

        def failed(error: ErrorCode) -> list[ErrorCode]:
            return [error] * len(committing.partitions)

        runtime = self._shards.find(self.index_of(committing.group_id))
        if isinstance(runtime, ErrorCode):
            return failed(runtime)
        return runtime.write(
            lambda shard, now_ms: shard.decide_commit_in_transaction(committing, producer.producer_id, now_ms),
            failed,
            producer=producer,
        )

    def end_transaction(
        self, index: int, producer: TransactionalProducer, *, is_commit: bool, coordinator_epoch: int
    ) -> ErrorCode | Future[ErrorCode]:
        """Write the marker to a partition of `__consumer_offsets`, and let the offsets count or go."""
        runtime = self._shards.find(index)
        if isinstance(runtime, ErrorCode):
            return runtime
        return runtime.write(
            lambda shard, _: shard.decide_end_transaction(
                producer.producer_id, is_commit=is_commit, coordinator_epoch=coordinator_epoch
            ),
            lambda error: error,
            producer=producer._replace(ends=True),
        )

    def loaded(self) -> list[GroupShard]:
        """What is known here so far."""
        return [runtime.machine for runtime in self._shards.loaded()]

    def shards(self) -> list[GroupShard] | ErrorCode:
        """All that is known here, or why that can't be told."""
        found = self._shards.all()
        return found if isinstance(found, ErrorCode) else [runtime.machine for runtime in found]

    def follow_topics(self, image: ClusterImage) -> None:
        """Groups look at topics that came, went or changed when their members next send a heartbeat."""
        self._topics = self._topics.followed_by(image, now_ms=self._clock.now_ms())

    @property
    def topics(self) -> Topics:
        return self._topics

    def topics_deleted(self, topics: Mapping[str, bytes]) -> None:
        turn = Slice(asyncio.get_running_loop())
        for runtime in tuple(self._shards.loaded()):
            if turn.is_over:
                self._long_work.call(partial(_forget_topics, runtime, topics))
            else:
                _forget_topics(runtime, topics)
        gone = self._gone
        self._gone = {shard: {**gone.get(shard, {}), **topics} for shard in self._shards.loading()}

    def _started(self, slot: Slot[GroupShard]) -> None:
        runtime, shard = slot.runtime, slot.runtime.machine
        gone = self._gone.pop(shard, {})
        if gone:
            runtime.write(lambda shard, _: shard.decide_topics_deleted(gone), nobody_hears)
        for group in [each for each in shard.groups.values() if len(each.members) > shard.limits.members_max]:
            runtime.write(partial(_decide_overfull, group), nobody_hears)

    def resume(self) -> None:
        """Begin to load what is there from before."""
        self._shards.resume()

    def follow_leadership(self) -> None:
        """Take over what this broker leads by now, and let go of what it no longer leads."""
        self._shards.follow()

    async def stop(self) -> None:
        await self._shards.stop()


def _forget_topics(runtime: Runtime[GroupShard], topics: Mapping[str, bytes]) -> None:
    if not runtime.is_stopped:
        runtime.write(lambda shard, _: shard.decide_topics_deleted(topics), nobody_hears)


def _decide_overfull(group: Group, shard: GroupShard, now_ms: int) -> Decision[None]:
    return membership.decide_overfull(group, limits=shard.limits, now_ms=now_ms)
