"""This broker's part in replication, as far as others ask for it.

A broker without replicated partitions has no more of it than this: the first partition with several replicas, or led by
another broker, begins the work (`replicating.py`), with its channels, tasks and timers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING

from moldau.broker.topics.partitions import Partitions
from moldau.controller.image import ClusterImage
from moldau.coordinator.long_work import LongWork
from moldau.core.clock import Clock
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.support import RACK_AWARE_SELECTOR
from moldau.log.partition_log import PartitionLog
from moldau.replication.assignment import NO_BROKER_EPOCH, IsrChange
from moldau.replication.partition import Partition

if TYPE_CHECKING:
    from moldau.broker.replicating import Replicating
    from moldau.replication.channel import BrokerChannels
    from moldau.replication.throttle import Throttle
    from moldau.replication.traffic import Traffic

NearerReplica = Callable[[Partition, int], int | None]


class Replication:
    """Owned by one event loop. `config` and `image` are asked each time, so that changes take effect."""

    def __init__(
        self,
        broker_id: int,
        partitions: Partitions,
        channels: Callable[[], BrokerChannels],
        *,
        image: Callable[[], ClusterImage],
        config: Callable[[], BrokerConfig],
        clock: Clock,
        flush: Callable[[PartitionLog], Awaitable[None]],
        long_work: LongWork | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.partitions = partitions
        self.channels = channels
        self.image = image
        self.config = config
        self.clock = clock
        self.flush = flush
        self.long_work = long_work or LongWork()
        self.traffic: Traffic | None = None
        """What partitions count in; None where metrics are off."""
        self._work: Replicating | None = None

    def start(self) -> None:
        """Follow what the partitions are, and what they become."""
        self.partitions.leadership_listeners.append(self.follow)
        for each in self.partitions.all():
            self.follow(each, each.is_leader)

    async def stop(self) -> None:
        if self.follow in self.partitions.leadership_listeners:
            self.partitions.leadership_listeners.remove(self.follow)
        if self._work is not None:
            await self._work.stop()

    def follow(self, partition: Partition, is_leader: bool) -> None:
        """A partition is led by this broker from now on, or followed, or nobody's."""
        is_lone = is_leader and partition.replicas is None
        if self._work is not None or not (is_lone or partition.leadership.leader_id < 0):
            self._working().follow(partition, is_leader)

    @property
    def max_lag(self) -> int:
        """The most records that a follower here lacks."""
        return 0 if self._work is None else self._work.max_lag

    def reconfigured(self) -> None:
        """The broker's configuration changed while it runs: there may be more fetchers, or fewer."""
        if self._work is not None:
            self._work.spread()

    def change_isr(self, partition: Partition, change: IsrChange) -> None:
        self._working().change_isr(partition, change)

    def _working(self) -> Replicating:
        if self._work is None:
            from moldau.broker.replicating import Replicating  # a lone broker's start is shorter without it

            self._work = Replicating(self)
        return self._work

    def broker_epoch(self) -> int:
        registered = self.image().brokers.get(self.broker_id)
        return NO_BROKER_EPOCH if registered is None else registered.epoch

    def is_eligible(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether a broker may join an ISR: it lives, and its fetches are of the life that is registered."""
        broker = self.image().brokers.get(broker_id)
        if broker is None or broker.fenced or getattr(broker, "in_controlled_shutdown", False):
            return False
        return broker_epoch in (NO_BROKER_EPOCH, broker.epoch)

    def is_alive(self, broker_id: int) -> bool:
        broker = self.image().brokers.get(broker_id)
        return broker is not None and not broker.fenced

    def nearer_replica(self, rack: str, listener_name: str) -> NearerReplica | None:
        """Where a consumer in a rack should read instead; None where nobody is sent anywhere (KIP-392)."""
        if self.config().optional_text("replica.selector.class") != RACK_AWARE_SELECTOR:
            return None
        return partial(self._nearest, rack, listener_name)

    def _nearest(self, rack: str, listener_name: str, partition: Partition, offset: int) -> int | None:
        replicas = partition.replicas
        if replicas is None:
            return None
        brokers = self.image().brokers
        racks = {
            each: broker.rack
            for each in replicas.isr
            if (broker := brokers.get(each)) is not None and listener_name in broker.endpoints
        }
        return replicas.nearest(rack, offset=offset, racks=racks)

    @cached_property
    def sending(self) -> Throttle:
        """What followers of this broker that are not in sync may be sent."""
        from moldau.broker.replication_throttles import sending

        return sending(self)
