"""The partitions of a broker: opened at its start, and kept equal to the cluster's image from then on."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from moldau.broker.context import Services
from moldau.broker.topics.partitions import Partitions
from moldau.broker.topics.reconciliation import Reconciliation
from moldau.broker.topics.startup import open_topics
from moldau.controller.image import ClusterImage, without_broker, without_leader
from moldau.controller.runtime import Controller
from moldau.controller.settings.config_changes import log_config_changes
from moldau.controller.topic_changes import log_topic_changes
from moldau.coordinator.long_work import LongWork
from moldau.core.clock import SystemClock
from moldau.core.config.broker import BrokerConfig
from moldau.log.directories.log_directories import LogDirectories
from moldau.node.cluster.replication import terms_of
from moldau.node.dynamic_configs import reconfigure
from moldau.node.storage.log_directories import report_missing, set_strays_aside
from moldau.replication.assignment import ReplicationTerms

if TYPE_CHECKING:
    from moldau.node.cluster.membership import Membership

LOGGER = logging.getLogger(__name__)


def reconcile(
    controller: Controller,
    partitions: Partitions,
    directories: LogDirectories,
    running: AsyncExitStack,
    *,
    broker_id: int,
    long_work: LongWork,
    terms: ReplicationTerms,
) -> Reconciliation:
    """One thread makes and moves all folders, so that nothing of it happens at the same time."""
    thread = ThreadPoolExecutor(1, thread_name_prefix="moldau-folders")
    running.callback(thread.shutdown)
    reconciliation = Reconciliation(
        broker_id, partitions, directories, thread=thread, clock=SystemClock(), long_work=long_work, terms=terms
    )
    running.push_async_callback(reconciliation.stop, controller.settled)
    return reconciliation


async def open_partitions(
    services: Services, config: BrokerConfig, stop: asyncio.Event, membership: Membership | None = None
) -> None:
    """Open what the image has on this broker, and follow it from now on."""

    def follow(old: ClusterImage | None, new: ClusterImage) -> None:
        if old is None or old.broker_configs != new.broker_configs:
            reconfigure(services, config, new)
        if membership is not None and not membership.is_followed:
            # What the image says of this broker is about the process before it, which others may have replaced.
            if not membership.follow(new):
                if services.image_without_itself is not None:
                    services.image_without_itself = without_broker(new, services.broker_id)
                return
            services.image_without_itself = old = None
        services.reconciliation.follow(old, new, defaults=services.config.topic_defaults)

    services.directories.high_watermark_of = services.partitions.high_watermark_of
    image = services.controller.image
    if membership is not None and not membership.is_followed:
        image = without_leader(image, services.broker_id)
    report_missing(image, services.directories, broker_id=services.broker_id)
    opened = await open_topics(
        image,
        broker_id=services.broker_id,
        directories=services.directories,
        defaults=services.config.topic_defaults,
        threads_per_directory=services.config.int("num.recovery.threads.per.data.dir"),
        clock=services.clock,
        stop=stop,
        terms=terms_of(config, services.replication),
    )
    services.reconciliation.adopt(image, opened)
    services.directories.is_started = True
    set_strays_aside(services.controller.image, services.directories, broker_id=services.broker_id)
    services.controller.subscribe(follow)
    services.controller.subscribe(log_topic_changes)
    services.controller.subscribe(log_config_changes)
    if services.controller.image is not image:  # it changed while the logs were opened
        follow(None, services.controller.image)
