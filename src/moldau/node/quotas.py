"""Client quotas of a broker that runs: from the image, and there only while any is set."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from moldau.broker.context import Services
from moldau.controller.image import ClusterImage
from moldau.controller.settings.quotas import IP

if TYPE_CHECKING:
    from moldau.broker.quotas.throttling import Throttling


def enforce_quotas(services: Services, running: AsyncExitStack) -> None:
    """Follow the image. Rates of clients outlive a change of their limits, and end with the last limit."""

    def follow(old: ClusterImage, new: ClusterImage) -> None:
        if old.client_quotas is not new.client_quotas:
            _limit(services, new)

    running.callback(services.controller.subscribe(follow))
    _limit(services, services.controller.image)


def _limit(services: Services, image: ClusterImage) -> None:
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
