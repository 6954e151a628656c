"""Client quotas of a broker that runs: from the image, and there only while any is set."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from moldau.broker.context import Services
from moldau.broker.network.connection_quotas import ConnectionQuotas, addresses
from moldau.controller.image import ClusterImage
from moldau.controller.settings.quotas import CONNECTION_CREATION_RATE, IP

if TYPE_CHECKING:
    from moldau.broker.quotas.throttling import Throttling


def enforce_quotas(services: Services, connections: ConnectionQuotas, running: AsyncExitStack) -> None:
    """Follow the image. Rates of clients outlive a change of their limits, and end with the last limit."""
    lookups: set[asyncio.Task[None]] = set()

    def limit(image: ClusterImage) -> None:
        _limit_clients(services, image)
        for earlier in lookups:
            earlier.cancel()
        task = asyncio.get_running_loop().create_task(_limit_hosts(services, connections, image))
        lookups.add(task)
        task.add_done_callback(lookups.discard)

    def follow(old: ClusterImage, new: ClusterImage) -> None:
        if old.client_quotas is not new.client_quotas:
            limit(new)

    running.callback(services.controller.subscribe(follow))
    running.callback(lambda: [task.cancel() for task in lookups])
    if services.controller.image.client_quotas:
        limit(services.controller.image)


def _limit_clients(services: Services, image: ClusterImage) -> None:
    assert services.dispatch is not None, "requests are limited where they are answered"
    limits = {entity: values for entity, values in image.client_quotas.items() if IP not in dict(entity)}
    throttling = None
    if limits:
        throttling = services.quotas or _throttling(services)
        throttling.clients.limit(limits)
    if throttling is not services.quotas:
        services.quotas = throttling
        services.dispatch.limit(throttling)


def _throttling(services: Services) -> Throttling:
    """Imported here because most brokers limit nobody."""
    from moldau.broker.quotas.clients import ClientQuotas
    from moldau.broker.quotas.rates import Windows
    from moldau.broker.quotas.throttling import Throttling

    config = services.config
    clients = ClientQuotas(
        services.clock.elapsed_ms,
        windows=Windows(config.int("quota.window.num"), 1_000 * config.int("quota.window.size.seconds")),
        mutation_windows=Windows(
            config.int("controller.quota.window.num"), 1_000 * config.int("controller.quota.window.size.seconds")
        ),
    )
    return Throttling(clients)


async def _limit_hosts(services: Services, connections: ConnectionQuotas, image: ClusterImage) -> None:
    """Names of hosts are looked up, which may take a moment."""
    rates = {
        dict(entity)[IP]: int(values[CONNECTION_CREATION_RATE])
        for entity, values in image.client_quotas.items()
        if IP in dict(entity) and CONNECTION_CREATION_RATE in values
    }
    if not rates:
        connections.host_rates = None
        return
    from moldau.broker.network.host_rates import HostLimits, HostRates

    named = {host: rate for host, rate in rates.items() if host is not None}
    limits = HostLimits(await addresses(named), rates[None]) if None in rates else HostLimits(await addresses(named))
    if connections.host_rates is None:
        config = services.config
        windows, window_s = config.int("quota.window.num"), config.int("quota.window.size.seconds")
        connections.host_rates = HostRates(limits, windows=windows, window_s=window_s)
    else:
        connections.host_rates.limit(limits)
