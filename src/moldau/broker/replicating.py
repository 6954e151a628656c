"""Replication at work: the fetchers of what other brokers lead, and the ISR of what this one leads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING
from zlib import crc32

from moldau.broker.replication_throttles import receiving
from moldau.coordinator.long_work import Slice
from moldau.core.ids import NO_LEADER, TopicId
from moldau.replication.assignment import IsrChange
from moldau.replication.channel import ChannelError, ask_while
from moldau.replication.fetcher import FetchTerms, Identity, ReplicaFetcher
from moldau.replication.follower import Follower
from moldau.replication.isr import ALTER_PARTITION_VERSION, IsrChanges
from moldau.replication.leader_session import Key
from moldau.replication.partition import Partition
from moldau.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

if TYPE_CHECKING:
    from moldau.broker.replication import Replication


SHRUNK_AT_ONCE = 50  # partitions, before a look at the clock: a fraction of a millisecond


class Replicating:
    def __init__(self, replication: Replication) -> None:
        self._of = replication
        self._fetchers: dict[tuple[int, int], ReplicaFetcher] = {}
        self._followed: dict[Key, ReplicaFetcher] = {}
        self._shrinking: asyncio.TimerHandle | None = None
        self._is_stopped = False
        self._receiving = receiving(replication)
        self._isr = IsrChanges(
            self._ask_controller,
            broker_id=replication.broker_id,
            broker_epoch=replication.broker_epoch,
            clock=replication.clock,
        )

    async def stop(self) -> None:
        self._is_stopped = True
        if self._shrinking is not None:
            self._shrinking.cancel()
        fetchers, self._fetchers = self._fetchers, {}
        self._followed.clear()
        await asyncio.gather(self._isr.stop(), *(each.stop() for each in fetchers.values()))

    def change_isr(self, partition: Partition, change: IsrChange) -> None:
        self._isr.submit(partition, change)

    def follow(self, partition: Partition, is_leader: bool) -> None:
        key: Key = (TopicId(partition.topic_id), partition.index)
        leader_id = partition.leadership.leader_id
        is_others = not is_leader and leader_id not in (NO_LEADER, self._of.broker_id)
        fetcher = self._fetcher(leader_id, partition) if is_others and partition.log.offline is None else None
        before = self._followed.get(key)
        if before is not None and before is not fetcher:
            before.remove(key)
            del self._followed[key]
        if fetcher is not None:
            self._followed[key] = fetcher
            follower = Follower(partition)
            follower.begin(now_ms=self._of.clock.now_ms())
            fetcher.add(key, follower)
        elif is_leader and partition.replicas is not None and self._shrinking is None:
            self._shrink_later()

    @property
    def max_lag(self) -> int:
        return max((fetcher.max_lag for fetcher in self._fetchers.values()), default=0)

    def spread(self) -> None:
        """Over as many fetchers as `num.replica.fetchers` says by now."""
        for partition in self._of.partitions.all():
            before = self._followed.get((TopicId(partition.topic_id), partition.index))
            if before is not None and before is not self._fetcher(partition.leadership.leader_id, partition):
                self.follow(partition, partition.is_leader)

    def _fetcher(self, leader_id: int, partition: Partition) -> ReplicaFetcher:
        """The same for a partition as long as `num.replica.fetchers` is the same."""
        count = self._of.config().int("num.replica.fetchers")
        number = (31 * crc32(partition.topic.encode()) + partition.index) % count
        fetcher = self._fetchers.get((leader_id, number))
        if fetcher is None:
            fetcher = self._fetchers[leader_id, number] = ReplicaFetcher(
                lambda purpose: self._of.channels().to(leader_id, purpose),
                f"fetcher-{number}-of-{leader_id}",
                whoami=lambda: Identity(self._of.broker_id, self._of.broker_epoch()),
                terms=self._fetch_terms,
                clock=self._of.clock,
                flush=self._of.flush,
                throttle=self._receiving,
            )
        return fetcher

    def _fetch_terms(self) -> FetchTerms:
        config = self._of.config()
        return FetchTerms(
            wait_ms_max=config.int("replica.fetch.wait.max.ms"),
            bytes_min=config.int("replica.fetch.min.bytes"),
            partition_bytes_max=config.int("replica.fetch.max.bytes"),
            response_bytes_max=config.int("replica.fetch.response.max.bytes"),
            backoff_ms=config.int("replica.fetch.backoff.ms"),
            timeout_ms=config.int("replica.socket.timeout.ms"),
        )

    async def _ask_controller(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        controller_id = self._of.image().controller_id
        if controller_id < 0:
            raise ChannelError("no controller is known")
        timeout_ms = self._of.config().int("controller.socket.timeout.ms")
        response: AlterPartitionResponse = await ask_while(
            lambda: self._of.image().controller_id == controller_id,
            self._of.channels().to(controller_id, "isr"),
            request,
            ALTER_PARTITION_VERSION,
            timeout_ms=timeout_ms,
        )
        return response

    def _shrink_later(self) -> None:
        interval_ms = self._of.config().int("replica.lag.time.max.ms") / 2
        self._shrinking = asyncio.get_running_loop().call_later(interval_ms / 1000, self._shrink)

    def _shrink(self) -> None:
        """Stops when nothing is left to look after: the next partition with followers begins it again."""
        led = [each for each in self._of.partitions.all() if each.replicas is not None]
        self._shrinking = None
        if led:
            self._shrink_later()
            self._shrink_some(iter(led))

    def _shrink_some(self, led: Iterator[Partition]) -> None:
        """In slices: ten thousand partitions take tens of milliseconds."""
        turn = Slice(asyncio.get_running_loop())
        while not self._is_stopped and (some := list(islice(led, SHRUNK_AT_ONCE))):
            self._isr.shrink(some)
            if turn.is_over:
                self._of.long_work.call(partial(self._shrink_some, led))
                return
