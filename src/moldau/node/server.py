"""The composition root: builds a broker from its configuration, runs it, and takes it down in the reverse order."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from moldau.broker.context import Services
from moldau.broker.fetching.cold_reads import ColdReads
from moldau.broker.fetching.fetch_sessions import FetchSessions
from moldau.broker.handlers import TABLE
from moldau.broker.handlers.api_versions import announced
from moldau.broker.housekeeping import Housekeeping
from moldau.broker.network.listener import Listener, descriptors_for_connections
from moldau.broker.peers import Peers
from moldau.broker.producing.flushing import Flusher
from moldau.broker.topics.partitions import Partitions
from moldau.broker.topics.startup import GivenUp
from moldau.controller.image import BrokerImage
from moldau.controller.producer_ids import ProducerIds
from moldau.controller.runtime import Controller
from moldau.coordinator.long_work import LongWork
from moldau.core.clock import SystemClock
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.inter_broker import inter_broker_listener
from moldau.core.config.listeners import PLAINTEXT
from moldau.core.config.metadata_store import session_timeout_ms
from moldau.core.errors import ApiError
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.directories.meta_properties import UnusableDirectory
from moldau.log.open_files import segments_max
from moldau.node.cluster.replication import replicate, replication, terms_of
from moldau.node.coordinators import coordinate, coordinators
from moldau.node.dynamic_configs import configured
from moldau.node.leadership import Halt, lead_again, watch_directories
from moldau.node.listening import answer, bind, broker_image
from moldau.node.running import BoundListener, Halted, Running, StartFailed
from moldau.node.storage.adoption import register
from moldau.node.storage.data import open_data
from moldau.node.storage.log_directories import refuse_lost_log_dirs
from moldau.node.storage.opening import open_partitions, reconcile
from moldau.store.store import MetadataStore, StoreError

if TYPE_CHECKING:
    from moldau.broker.delegation_tokens import DelegationTokens
    from moldau.node.cluster.membership import Membership, Place
    from moldau.node.cluster.others import OtherBrokers
    from moldau.node.metrics import Metrics
    from moldau.node.securing.first_users import FirstUsers
    from moldau.replication.channel import Security

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
    place: Place | None = None,
    first_users: FirstUsers | None = None,
) -> None:
    """Run one broker until `stop`; what went wrong while starting comes out as `StartFailed`, and later as `Halted`.

    `place` is for a broker of a cluster with others.
    """
    halt = Halt(stop)
    try:
        async with AsyncExitStack() as running:
            try:
                node = await start(
                    config,
                    running,
                    halt=halt,
                    accept_lost_log_dirs=accept_lost_log_dirs,
                    cluster_id=cluster_id,
                    place=place,
                    first_users=first_users,
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
    config: BrokerConfig,
    running: AsyncExitStack,
    *,
    halt: Halt,
    accept_lost_log_dirs: bool,
    cluster_id: str | None,
    place: Place | None,
    first_users: FirstUsers | None = None,
) -> Running:
    """Everything in the order of its needs; what is started is put on the stack that ends it."""
    if place is not None and inter_broker_listener(config).security != PLAINTEXT:
        between_brokers(lambda: config)  # what it can't be made of is told before anything is begun
    listeners = bind(config, running)
    metrics = metrics_of(config, running)
    store, directories, metadata = await open_data(
        config,
        running,
        halt.stop,
        accept_lost_log_dirs=accept_lost_log_dirs,
        cluster_id=cluster_id,
        shared=None if place is None else place.folder,
    )
    directories.open_files.allow(segments_max(descriptors_for_connections()))
    controller = await opened_controller(store, config, directories, running, is_alone=place is None, users=first_users)
    services = serving(config, controller, directories, running, is_alone=place is None)
    services.delegation_tokens = delegation_tokens(config, controller)
    broker = services.itself = broker_image(config, listeners, directories)
    tell_of(services, metrics, running)
    membership = None
    if place is not None:
        membership = belong(place, store, services, broker, accept_lost_log_dirs=accept_lost_log_dirs)
    is_itself = membership is None or membership.is_followed
    if is_itself and not accept_lost_log_dirs:  # in a cluster, other brokers have what is lost
        refuse_lost_log_dirs(controller.image, directories, broker_id=config.node_id)
    if is_itself:
        await register(services, broker)
    watch_directories(services, store, halt)
    if is_itself:
        await lead_again(services)
    else:
        controller.take_duties(lambda: services.config)
    await open_partitions(services, config, halt.stop, membership)
    replicate(services, running)
    coordinate(services, running)
    keep_house(services, running)
    await answer(services, listeners, running, halt)
    if membership is not None:
        await take_part(membership, services, store, running, halt)
    return now_running(services, listeners, metadata, None if metrics is None else metrics.serving(running))


async def take_part(
    membership: Membership, services: Services, store: MetadataStore, running: AsyncExitStack, halt: Halt
) -> None:
    heed_others(services, store, membership, running)
    await membership.join(services, halt.stop)
    running.push_async_callback(leave, membership, services, halt)


def metrics_of(config: BrokerConfig, running: AsyncExitStack) -> Metrics | None:
    """Imported here because most brokers have none."""
    if not config.has_metrics:
        return None
    from moldau.node.metrics import open_metrics

    return open_metrics(config, running)


def tell_of(services: Services, metrics: Metrics | None, running: AsyncExitStack) -> None:
    if metrics is not None:
        metrics.tell_of(services, running)


async def opened_controller(
    store: MetadataStore,
    config: BrokerConfig,
    directories: LogDirectories,
    running: AsyncExitStack,
    *,
    is_alone: bool,
    users: FirstUsers | None,
) -> Controller:
    controller = await Controller.open(store, config.node_id, cluster_id=directories.cluster_id, is_serving=is_alone)
    running.push_async_callback(controller.close)
    if users is not None:
        from moldau.node.securing.first_users import add_first_users

        await add_first_users(controller, users)
    return controller


def belong(
    place: Place, store: MetadataStore, services: Services, broker: BrokerImage, *, accept_lost_log_dirs: bool
) -> Membership:
    """To a cluster of several. As long as nobody else ever was in it, this broker is what it says it is."""
    from moldau.controller.members.registration import lost_or_kept
    from moldau.node.cluster.membership import Membership
    from moldau.node.storage.kept_logs import has_whole_logs, lost_logs, note_boot

    services.brokers_expected = place.brokers
    controller, directories = services.controller, services.directories
    is_alone = controller.is_active and controller.image.brokers.keys() <= {broker.id}
    is_whole = has_whole_logs(directories)
    image = controller.image
    gone = {} if is_alone else lost_logs(image, directories, broker_id=broker.id, are_accepted=accept_lost_log_dirs)
    lost, kept = lost_or_kept(image, broker.id, gone)
    membership = Membership(
        store,
        broker,
        cluster_id=directories.cluster_id,
        has_whole_logs=is_whole,
        lost=lost,
        kept=kept,
    )
    membership.is_followed = is_alone
    note_boot(directories, are_cut=not (is_whole or is_alone))
    return membership


def heed_others(services: Services, store: MetadataStore, membership: Membership, running: AsyncExitStack) -> None:
    """Brokers whose processes have ended, and brokers that are out of reach, this one for the others perhaps."""
    from moldau.node.cluster.evidence import Evidence
    from moldau.node.cluster.reachability import Reachability

    assert services.peers is not None, "a broker of a cluster has others"
    evidence = Evidence(services.controller, store, listener_name=services.peers.listener_name)
    services.peers.on_unreachable = evidence.suspect
    running.push_async_callback(evidence.stop)
    reachability = Reachability(
        services.controller,
        store,
        membership,
        services.peers,
        broker_id=services.broker_id,
        timeout_ms=session_timeout_ms(services.config),
    )
    reachability.start()
    running.push_async_callback(reachability.stop)


async def leave(membership: Membership, services: Services, halt: Halt) -> None:
    """Before anything is taken down; a broker that has to end hands over nothing."""
    if halt.reason is None and services.config.flag("controlled.shutdown.enable"):
        await membership.leave(services)


def serving(
    config: BrokerConfig,
    controller: Controller,
    directories: LogDirectories,
    running: AsyncExitStack,
    *,
    is_alone: bool,
) -> Services:
    """What handlers use."""
    pools, partitions, long_work = threads(running), Partitions(), LongWork()
    peers, flusher = peers_of(config, controller, running, lambda: services.config), Flusher(pools.executor)
    others = None if is_alone else asking(config, controller, peers, running)
    producer_ids = ProducerIds(controller, elsewhere=None if others is None else others.producer_ids)
    replicas = replication(
        config, controller, partitions, peers, current=lambda: services.config, flush=flusher.flush, long_work=long_work
    )
    terms = terms_of(config, replicas)
    made = coordinators(
        config,
        controller,
        partitions,
        producer_ids=producer_ids,
        remote_markers=None if others is None else others.markers,
        flush=flusher.flush,
        long_work=long_work,
    )
    services = Services(
        broker_id=config.node_id,
        api_versions=announced(TABLE),
        config=configured(config, controller.image),
        clock=SystemClock(),
        controller=controller,
        partitions=partitions,
        replication=replicas,
        reconciliation=reconcile(
            controller, partitions, directories, running, broker_id=config.node_id, long_work=long_work, terms=terms
        ),
        directories=directories,
        producer_ids=producer_ids,
        fetch_sessions=fetch_sessions(config),
        flusher=flusher,
        long_work=long_work,
        cold_reads=cold_reads(running),
        peers=peers,
        **pools._asdict(),
        **made._asdict(),
    )
    if others is not None:
        services.forwarding, services.remote_admission = others.forwarding, others.admission
    return services


def delegation_tokens(config: BrokerConfig, controller: Controller) -> DelegationTokens | None:
    """An empty secret disables them, as none does."""
    secret = config.optional_text("delegation.token.secret.key")
    if not secret:
        return None
    from moldau.broker.delegation_tokens import DelegationTokens

    return DelegationTokens(secret, lambda: controller.image)


def peers_of(
    config: BrokerConfig, controller: Controller, running: AsyncExitStack, current: Callable[[], BrokerConfig]
) -> Peers:
    listener = inter_broker_listener(config)
    peers = Peers(
        config.node_id,
        lambda: controller.image,
        listener_name=listener.name,
        protocol=listener.security,
        security=None if listener.security == PLAINTEXT else lambda: between_brokers(current),
    )
    running.push_async_callback(peers.close)
    return peers


def between_brokers(current: Callable[[], BrokerConfig]) -> Security:
    """Imported here because a broker that is alone, or whose listener is plain, has none of it."""
    from moldau.node.securing.between_brokers import channel_security

    return channel_security(current)


def asking(config: BrokerConfig, controller: Controller, peers: Peers, running: AsyncExitStack) -> OtherBrokers:
    """Imported here because a broker that is alone asks nobody."""
    from moldau.node.cluster.others import other_brokers

    return other_brokers(config, controller, peers, running)


def now_running(services: Services, listeners: list[Listener], metadata: str, metrics: str | None) -> Running:
    return Running(
        broker_id=services.broker_id,
        cluster_id=services.directories.cluster_id,
        listeners=tuple(BoundListener(each.name, each.host, each.port) for each in listeners),
        data_dirs=tuple(services.directories.paths),
        metadata=None if Path(metadata).parent in {path.resolve() for path in services.directories.paths} else metadata,
        topics=len(services.controller.image.topics),
        partitions=sum(1 for _ in services.partitions.all()),
        metrics=metrics,
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


def keep_house(services: Services, running: AsyncExitStack) -> None:
    housekeeping = Housekeeping(services, services.executor)
    housekeeping.start()
    running.push_async_callback(housekeeping.stop)
    running.push_async_callback(end_moves, services)


async def end_moves(services: Services) -> None:
    if services.moves is not None:
        await services.moves.stop()


def fetch_sessions(config: BrokerConfig) -> FetchSessions:
    return FetchSessions(
        sessions_max=config.int("max.incremental.fetch.session.cache.slots"),
        eviction_ms_min=FETCH_SESSION_EVICTION_MS_MIN,
    )
