"""The two coordinators: how they are put together, what they load at start, what they follow in the cluster."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

from moldau.broker.context import Services
from moldau.broker.producing.marker_appends import MarkerAppends
from moldau.broker.topics.partitions import Partitions
from moldau.controller.image import ClusterImage
from moldau.controller.producer_ids import ProducerIds
from moldau.controller.runtime import Controller
from moldau.controller.settings.features import TRANSACTION_VERSION, level_of
from moldau.coordinator.journal import Flush
from moldau.coordinator.long_work import LongWork
from moldau.core.clock import SystemClock
from moldau.core.config.broker import BrokerConfig
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER, TopicPartition
from moldau.core.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from moldau.groups.coordinator import GroupCoordinator
from moldau.groups.limits import ConsumerGroupConfig, GroupLimits
from moldau.transactions.coordinator import TransactionCoordinator
from moldau.transactions.limits import TransactionLimits
from moldau.transactions.markers_due import MarkersDue

if TYPE_CHECKING:
    from moldau.broker.producing.remote_markers import RemoteMarkers

COORDINATED = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC})


class Coordinators(NamedTuple):
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    markers: MarkerAppends


def coordinators(
    config: BrokerConfig,
    controller: Controller,
    partitions: Partitions,
    *,
    producer_ids: ProducerIds,
    flush: Flush,
    long_work: LongWork,
    remote_markers: RemoteMarkers | None = None,
) -> Coordinators:
    clock = SystemClock()
    groups = GroupCoordinator(
        partition_of=lambda index: partitions.get(GROUP_METADATA_TOPIC, index),
        partition_count=_partition_count(controller, GROUP_METADATA_TOPIC, config.int("offsets.topic.num.partitions")),
        limits=GroupLimits.of(config),
        clock=clock,
        flush=flush,
        long_work=long_work,
    )
    markers = MarkerAppends(partitions, groups, clock, flush)

    def write_marker(where: TopicPartition, due: MarkersDue, coordinator_epoch: int) -> ErrorCode | Future[ErrorCode]:
        topic = controller.image.topics.get(where.topic)
        if topic is None:
            return ErrorCode.NONE  # it was deleted, with the records that the marker would be for
        is_there = where.partition < len(topic.partitions)
        leader = topic.partitions[where.partition].leader if is_there else NO_LEADER
        if remote_markers is None or leader in (config.node_id, NO_LEADER):
            return markers.write(where, due, coordinator_epoch)
        return remote_markers.write(leader, where, due, coordinator_epoch)

    transactions = TransactionCoordinator(
        partition_of=lambda index: partitions.get(TRANSACTION_STATE_TOPIC, index),
        partition_count=_partition_count(
            controller, TRANSACTION_STATE_TOPIC, config.int("transaction.state.log.num.partitions")
        ),
        limits=_transaction_limits(config, controller.image),
        clock=clock,
        flush=flush,
        long_work=long_work,
        next_producer_id=producer_ids.next,
        write_marker=write_marker,
    )
    return Coordinators(groups, transactions, markers)


def _partition_count(controller: Controller, topic: str, configured: int) -> Callable[[], int]:
    """How many partitions an internal topic has, or will have once it is created."""

    def count() -> int:
        known = controller.image.topics.get(topic)
        return configured if known is None else len(known.partitions)

    return count


def _transaction_limits(config: BrokerConfig, image: ClusterImage) -> TransactionLimits:
    return TransactionLimits.of(config, transaction_version=level_of(image, TRANSACTION_VERSION))


def coordinate(services: Services, running: AsyncExitStack) -> None:
    """Load what there is, and follow the cluster: who leads the coordinators' partitions, topics that go, features."""
    followers: set[asyncio.Task[None]] = set()

    def follow(old: ClusterImage, new: ClusterImage) -> None:
        # A broker that was just taken in begins to lead, whatever happened to the topics.
        if old.brokers is not new.brokers or not new.changed_topics.isdisjoint(COORDINATED):
            follower = asyncio.get_running_loop().create_task(_follow_leadership(services))
            followers.add(follower)
            follower.add_done_callback(followers.discard)
        gone = {
            name: old.topics[name].id for name in new.changed_topics if name in old.topics and _is_other(old, new, name)
        }
        if new.changed_topics:
            services.groups.follow_topics(new)
        if gone:
            services.groups.topics_deleted(gone)
        if old.features_epoch != new.features_epoch:
            services.transactions.limit(_transaction_limits(services.config, new))

    # Brokers' and groups' configurations may be changed while this broker runs.
    services.groups.config_of = lambda group_id: ConsumerGroupConfig.of(
        services.config, services.controller.image.group_config(group_id)
    )
    services.groups.follow_topics(services.controller.image)
    services.groups.resume()
    running.push_async_callback(services.groups.stop)
    services.transactions.resume()
    running.push_async_callback(services.transactions.stop)
    running.callback(lambda: [follower.cancel() for follower in followers])
    running.callback(services.controller.subscribe(follow))


async def _follow_leadership(services: Services) -> None:
    """When the partitions here are what the image says, and again when those are there that had to be made."""
    _take_over(services)
    await services.reconciliation.settled()
    _take_over(services)


def _take_over(services: Services) -> None:
    services.groups.follow_leadership()
    services.transactions.follow_leadership()


def _is_other(old: ClusterImage, new: ClusterImage, name: str) -> bool:
    topic = new.topics.get(name)
    return topic is None or topic.id != old.topics[name].id
