"""How a broker's replication is put together, and when it begins and ends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack

from moldau.broker.context import Services
from moldau.broker.peers import Peers
from moldau.broker.replication import Replication
from moldau.broker.topics.partitions import Partitions
from moldau.controller.runtime import Controller
from moldau.coordinator.journal import Flush
from moldau.coordinator.long_work import LongWork
from moldau.core.clock import SystemClock
from moldau.core.config.broker import BrokerConfig
from moldau.replication.assignment import ReplicationTerms


def replication(
    config: BrokerConfig,
    controller: Controller,
    partitions: Partitions,
    peers: Peers,
    *,
    current: Callable[[], BrokerConfig],
    flush: Flush,
    long_work: LongWork,
) -> Replication:
    """`current` is the configuration as it changes while the broker runs."""
    made = Replication(
        config.node_id,
        partitions,
        lambda: peers.channels,
        image=lambda: controller.image,
        config=current,
        clock=SystemClock(),
        flush=flush,
        long_work=long_work,
    )
    if config.has_metrics:
        from moldau.replication.traffic import Traffic

        made.traffic = Traffic()
    return made


def terms_of(config: BrokerConfig, replication: Replication) -> ReplicationTerms:
    lag_ms_max = config.int("replica.lag.time.max.ms")
    return ReplicationTerms(lag_ms_max, replication.is_eligible, replication.is_alive, replication.traffic)


def replicate(services: Services, running: AsyncExitStack) -> None:
    services.replication.start()
    running.push_async_callback(services.replication.stop)
