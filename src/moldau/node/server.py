"""The composition root: builds a broker from its configuration, runs it, and takes it down in the reverse order."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import NamedTuple

from moldau.broker.context import Services
from moldau.broker.fetching.cold_reads import ColdReads
from moldau.broker.fetching.fetch_sessions import FetchSessions
from moldau.broker.handlers import TABLE
from moldau.broker.handlers.api_versions import announced
from moldau.broker.housekeeping import Housekeeping
from moldau.broker.network.connection_quotas import ConnectionQuotas, quota_limits
from moldau.broker.network.frame_budget import FrameBudget
from moldau.broker.network.listener import ConnectionLimits, Listener, descriptors_for_connections
from moldau.broker.producing.flushing import Flusher
from moldau.broker.requests.dispatch import Dispatch
from moldau.broker.topics.partitions import Partitions
from moldau.broker.topics.reconciliation import Reconciliation
from moldau.broker.topics.startup import GivenUp, open_topics
from moldau.controller.config_changes import log_config_changes
from moldau.controller.image import BrokerImage, ClusterImage, Endpoint
from moldau.controller.producer_ids import ProducerIds
from moldau.controller.runtime import Controller
from moldau.controller.topic_changes import log_topic_changes
from moldau.coordinator.long_work import LongWork
from moldau.core.clock import SystemClock
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.core.errors import ApiError
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.directories.meta_properties import UnusableDirectory
from moldau.log.open_files import segments_max
from moldau.node.adoption import register
from moldau.node.coordinators import coordinate, coordinators
from moldau.node.leadership import Halt, lead_again, watch_directories
from moldau.node.log_directories import (
    open_log_dirs,
    open_metadata,
    refuse_lost_log_dirs,
    report_missing,
    set_strays_aside,
)
from moldau.node.running import BoundListener, Halted, Running, StartFailed
from moldau.store.store import StoreError

LOGGER = logging.getLogger(__name__)

FETCH_SESSION_EVICTION_MS_MIN = 120_000  # Kafka's fixed value: a session that young is not taken away
SWITCH_S = 0.0005  # the loop waits so long for a thread that computes, after each of its system calls
THREADS = 4  # fsync, compaction and checkpoints: they wait for the disk, not for a core


async def serve(
    config: BrokerConfig,
    *,
    announce: Callable[[Running], None],
    stop: asyncio.Event,
    accept_lost_log_dirs: bool = False,
    cluster_id: str | None = None,
) -> None:
    """Run one broker until `stop`; what went wrong while starting comes out as `StartFailed`, and later as `Halted`."""
    halt = Halt(stop)
    try:
        async with AsyncExitStack() as running:
            try:
                node = await start(
                    config, running, halt=halt, accept_lost_log_dirs=accept_lost_log_dirs, cluster_id=cluster_id
                )
            except (UnusableDirectory, StoreError, ApiError) as wrong:
                raise StartFailed(str(wrong)) from wrong
            except GivenUp:
                LOGGER.info("the start was given up; what was not opened is as it was")
            else:
                if not stop.is_set():  # else it was to end, or the disk failed, while partitions were opened
                    announce(node)
                await stop.wait()
    except (StoreError, ApiError, OSError) as wrong:
        if not stop.is_set():
            raise
        halt(f"could not stop cleanly: {wrong}")
    if halt.reason is not None:
        raise Halted(halt.reason)


async def start(
    config: BrokerConfig, running: AsyncExitStack, *, halt: Halt, accept_lost_log_dirs: bool, cluster_id: str | None
) -> Running:
    """Everything in the order of its needs; what is started is put on the stack that ends it."""
    clock = SystemClock()
    listeners = bind(config, running)
    directories = await open_log_dirs(config, clock, accept_lost_log_dirs=accept_lost_log_dirs, cluster_id=cluster_id)
    running.callback(directories.end)
    directories.open_files.allow(segments_max(descriptors_for_connections()))
    pools = threads(running)
    store = await open_metadata(directories.paths, clock)
    running.push_async_callback(store.close)
    controller = await Controller.open(store, config.node_id, cluster_id=directories.cluster_id)
    running.push_async_callback(controller.close)
    if not accept_lost_log_dirs:
        refuse_lost_log_dirs(controller.image, directories, broker_id=config.node_id)

    partitions = Partitions()
    producer_ids = ProducerIds(controller)
    flusher, long_work = Flusher(pools.executor), LongWork()
    made = coordinators(
        config, controller, partitions, producer_ids=producer_ids, flush=flusher.flush, long_work=long_work
    )
    services = Services(
        broker_id=config.node_id,
        api_versions=announced(TABLE),
        config=configured_at_start(config, controller.image),
        clock=clock,
        controller=controller,
        partitions=partitions,
        reconciliation=reconcile(
            controller, partitions, directories, running, broker_id=config.node_id, long_work=long_work
        ),
        directories=directories,
        producer_ids=producer_ids,
        fetch_sessions=fetch_sessions(config),
        flusher=flusher,
        long_work=long_work,
        cold_reads=cold_reads(running),
        **pools._asdict(),
        **made._asdict(),
    )
    await register(services, broker_image(config, listeners, directories))
    watch_directories(services, store, halt)
    await lead_again(services)
    await open_partitions(services, config, halt.stop)
    coordinate(services, running)
    keep_house(services, running)
    await answer(services, listeners, running, halt)
    return now_running(services, listeners)


def now_running(services: Services, listeners: list[Listener]) -> Running:
    return Running(
        broker_id=services.broker_id,
        cluster_id=services.directories.cluster_id,
        listeners=tuple(BoundListener(each.name, each.host, each.port) for each in listeners),
        data_dirs=tuple(services.directories.paths),
        topics=len(services.controller.image.topics),
        partitions=sum(1 for _ in services.partitions.all()),
    )


class Threads(NamedTuple):
    """Apart from each other: an fsync that clients wait for must not stand behind answers to those who ask a lot."""

    executor: Executor
    computing: Executor


def threads(running: AsyncExitStack) -> Threads:
    sys.setswitchinterval(SWITCH_S)
    executor = ThreadPoolExecutor(THREADS, thread_name_prefix="moldau")
    running.callback(executor.shutdown)
    computing = ThreadPoolExecutor(1, thread_name_prefix="moldau-computing")
    running.callback(computing.shutdown)
    return Threads(executor, computing)


def cold_reads(running: AsyncExitStack) -> ColdReads:
    reads = ColdReads()
    running.callback(reads.close)
    return reads


def reconcile(
    controller: Controller,
    partitions: Partitions,
    directories: LogDirectories,
    running: AsyncExitStack,
    *,
    broker_id: int,
    long_work: LongWork,
) -> Reconciliation:
    """One thread makes and moves all folders, so that nothing of it happens at the same time."""
    thread = ThreadPoolExecutor(1, thread_name_prefix="moldau-folders")
    running.callback(thread.shutdown)
    reconciliation = Reconciliation(
        broker_id, partitions, directories, thread=thread, clock=SystemClock(), long_work=long_work
    )
    running.push_async_callback(reconciliation.stop, controller.settled)
    return reconciliation


def keep_house(services: Services, running: AsyncExitStack) -> None:
    housekeeping = Housekeeping(services, services.executor)
    housekeeping.start()
    running.push_async_callback(housekeeping.stop)


def fetch_sessions(config: BrokerConfig) -> FetchSessions:
    return FetchSessions(
        sessions_max=config.int("max.incremental.fetch.session.cache.slots"),
        eviction_ms_min=FETCH_SESSION_EVICTION_MS_MIN,
    )


def configured(config: BrokerConfig, image: ClusterImage) -> BrokerConfig:
    """The static configuration with what was changed while brokers ran."""
    return config.with_dynamic(image.broker_config(""), image.broker_config(str(config.node_id)))


def configured_at_start(config: BrokerConfig, image: ClusterImage) -> BrokerConfig:
    """The file may have changed since: a value in it that doesn't go with a dynamic one looks right by itself."""
    try:
        return configured(config, image)
    except ConfigError as wrong:
        dynamic = {**image.broker_config(""), **image.broker_config(str(config.node_id))}
        named = ", ".join(f"{name}={value}" for name, value in sorted(dynamic.items()))
        raise StartFailed(f"{wrong} (with what was set while the broker ran: {named})") from wrong


async def open_partitions(services: Services, config: BrokerConfig, stop: asyncio.Event) -> None:
    """Open what the image has on this broker, and follow it from now on."""

    def follow(old: ClusterImage, new: ClusterImage) -> None:
        if old.broker_configs != new.broker_configs:
            services.config = configured(config, new)
        services.reconciliation.follow(old, new, defaults=services.config.topic_defaults)

    image = services.controller.image
    report_missing(image, services.directories, broker_id=services.broker_id)
    opened = await open_topics(
        image,
        broker_id=services.broker_id,
        directories=services.directories,
        defaults=services.config.topic_defaults,
        threads_per_directory=services.config.int("num.recovery.threads.per.data.dir"),
        clock=services.clock,
        stop=stop,
    )
    services.reconciliation.adopt(image, opened)
    services.directories.is_started = True
    set_strays_aside(services.controller.image, services.directories)
    services.controller.subscribe(follow)
    services.controller.subscribe(log_topic_changes)
    services.controller.subscribe(log_config_changes)
    if services.controller.image is not image:  # it changed while the logs were opened
        services.reconciliation.follow(None, services.controller.image, defaults=services.config.topic_defaults)


def bind(config: BrokerConfig, running: AsyncExitStack) -> list[Listener]:
    """Take all addresses before anything else: a wrong one is known at once, and leaves no folder behind."""
    bound = []
    for wanted in config.listeners:
        listener = Listener(wanted.name)
        try:
            listener.bind(
                wanted.host,
                wanted.port,
                backlog=config.int("socket.listen.backlog.size"),
                receive_buffer_bytes=config.int("socket.receive.buffer.bytes"),
            )
        except OSError as wrong:
            wrong.filename = str(wanted)
            raise
        running.callback(listener.close)
        bound.append(listener)
    return bound


async def answer(services: Services, listeners: list[Listener], running: AsyncExitStack, halt: Halt) -> None:
    """Begin to serve clients; they are let go before anything that their requests need is taken down."""
    config = services.config
    allowed = ConnectionLimits(
        idle_ms_max=config.int("connections.max.idle.ms"),
        frame_bytes_max=config.int("socket.request.max.bytes"),
        send_buffer_bytes=config.int("socket.send.buffer.bytes"),
    )
    quotas = await limit_connections(services, [listener.name for listener in listeners], running)
    dispatch = Dispatch(TABLE, services)
    budget = FrameBudget(config.int("queued.max.request.bytes"))
    for listener in listeners:
        running.callback(listener.close)
        listener.start(dispatch, allowed, budget, quotas)
    running.push_async_callback(finish_requests, listeners, halt)


async def finish_requests(listeners: list[Listener], halt: Halt) -> None:
    """Before anything that they need is taken down; a broker that has to end can't count on its disk for them."""
    if halt.reason is None:
        await asyncio.gather(*(listener.finish() for listener in listeners))


async def limit_connections(services: Services, listeners: list[str], running: AsyncExitStack) -> ConnectionQuotas:
    """Limits that follow the configuration, also while the broker runs."""
    descriptors = descriptors_for_connections()
    quotas = ConnectionQuotas(await quota_limits(services.config, listeners, descriptors=descriptors))
    changes: set[asyncio.Task[None]] = set()

    async def change() -> None:
        quotas.limit(await quota_limits(services.config, listeners, descriptors=descriptors))

    def follow(old: ClusterImage, new: ClusterImage) -> None:
        if old.broker_configs != new.broker_configs:
            task = asyncio.get_running_loop().create_task(change())
            changes.add(task)
            task.add_done_callback(changes.discard)

    services.controller.subscribe(follow)
    running.callback(lambda: [task.cancel() for task in changes])
    return quotas


def broker_image(config: BrokerConfig, listeners: list[Listener], directories: LogDirectories) -> BrokerImage:
    ports = {listener.name: listener.port for listener in listeners}
    advertised = config.advertised(ports, socket.gethostname())
    return BrokerImage(
        id=config.node_id,
        endpoints={each.name: Endpoint(each.host, each.port, each.security) for each in advertised},
        rack=config.optional_text("broker.rack"),
        directories={directories.directory_id(path): str(path) for path in directories.paths},
    )
