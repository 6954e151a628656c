"""The broker's listeners: bound before anything else, answering clients when all that they need is there."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack

from moldau.broker.api import Api
from moldau.broker.context import Services
from moldau.broker.handlers import TABLE
from moldau.broker.network.connection_quotas import ConnectionQuotas, quota_limits
from moldau.broker.network.frame_budget import FrameBudget
from moldau.broker.network.listener import ConnectionLimits, Door, Listener, descriptors_for_connections
from moldau.broker.requests.dispatch import Dispatch
from moldau.controller.image import BrokerImage, ClusterImage, Endpoint
from moldau.controller.partitions.min_isr import MIN_ISR
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.inter_broker import inter_broker_listener
from moldau.core.config.listeners import PLAINTEXT
from moldau.log.directories.log_directories import LogDirectories
from moldau.node.authorizing import authorization
from moldau.node.leadership import Halt
from moldau.node.quotas import enforce_quotas


def bind(config: BrokerConfig, running: AsyncExitStack) -> list[Listener]:
    """Take all addresses before anything else: a wrong one is known at once, and leaves no folder behind."""
    if any(each.security != PLAINTEXT for each in config.listeners):
        from moldau.node.securing.doors import check_doors

        check_doors(config)
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
    services.authorization = authorization(config, services.controller)
    dispatch = services.dispatch = Dispatch(answered(services), services)
    services.listeners, services.connections = listeners, quotas
    if services.metering is not None:
        dispatch.meter(services.metering)
    enforce_quotas(services, quotas, running)
    budget = FrameBudget(config.int("queued.max.request.bytes"))
    doors = doors_of(services, running)
    for listener in listeners:
        running.callback(listener.close)
        listener.start(dispatch, allowed, budget, quotas, doors.get(listener.name))
    running.push_async_callback(finish_requests, listeners, halt)


def doors_of(services: Services, running: AsyncExitStack) -> Mapping[str, Door]:
    """Of the listeners that are not plain. Imported here because most brokers have none."""
    if all(each.security == PLAINTEXT for each in services.config.listeners):
        return {}
    from moldau.node.securing.doors import open_doors

    return open_doors(services, running)


def answered(services: Services) -> tuple[Api, ...]:
    """What clients may ask, and in a cluster what other brokers may."""
    table = TABLE
    if services.telemetry is not None:
        from moldau.broker.handlers.telemetry import TELEMETRY

        table += TELEMETRY
    if services.forwarding is not None:
        from moldau.broker.handlers.between_brokers import BETWEEN_BROKERS
        from moldau.broker.requests.fellow_brokers import FellowBrokers

        fellows = FellowBrokers(services, broker_principal)
        table += tuple(fellows.guarding(each) for each in BETWEEN_BROKERS)
    if services.authorization is not None:
        from moldau.broker.requests.refusals import guarded

        table = tuple(guarded(table, services.authorization))
    return table


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
        min_insync_replicas=config.int(MIN_ISR),
        inter_broker_listener=inter_broker_listener(config).name,
        inter_broker_principal=broker_principal(config),
    )


def broker_principal(config: BrokerConfig) -> str:
    """As whom other brokers know this one; empty where it logs in nowhere, or the configuration alone does not say."""
    if not inter_broker_listener(config).security.startswith("SASL_"):
        return ""
    from moldau.node.securing.broker_user import user_of_broker

    user = user_of_broker(config)
    return "" if user is None else f"User:{user}"
