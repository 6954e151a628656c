"""The doors of listeners that are not plain, made from the configuration."""

from __future__ import annotations

import asyncio
import logging
import os
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AsyncExitStack

from moldau.broker.context import Services
from moldau.broker.network.listener import descriptors_for_connections
from moldau.broker.network.secured.door import SecuredDoor
from moldau.broker.network.secured.handshakes import ListenerTls
from moldau.broker.network.secured.strangers import Strangers
from moldau.controller.image import ClusterImage
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.core.config.listener_security import ListenerSecurity
from moldau.core.config.listeners import PLAINTEXT
from moldau.node.securing.certificates import Certificates, load_mapper, load_tls, tls_settings
from moldau.node.securing.logins import check_logins, logins
from moldau.security.tls.changes import Watch, look_at

LOGGER = logging.getLogger(__name__)

THREADS_MAX = 4  # they compute, mostly without the interpreter's lock; more would only take cores from the loop


def secured(config: BrokerConfig) -> list[ListenerSecurity]:
    return [ListenerSecurity(config, each) for each in config.listeners if each.security != PLAINTEXT]


def check_doors(config: BrokerConfig) -> None:
    """Read what the listeners need, before anything is started. ConfigError."""
    for security in secured(config):
        if security.uses_tls:
            load_tls(security)
            load_mapper(security)
        if security.uses_sasl:
            check_logins(security)


def open_doors(services: Services, running: AsyncExitStack) -> dict[str, SecuredDoor]:
    executor = ThreadPoolExecutor(min(THREADS_MAX, os.cpu_count() or 1), thread_name_prefix="moldau-secured")
    running.callback(executor.shutdown)
    certificates = Certificates(lambda: services.config, executor)
    doors, strangers = {}, Strangers(descriptors_for_connections())
    for security in secured(services.config):
        tls = _listener_tls(security, services, certificates, executor) if security.uses_tls else None
        known = logins(security, services, executor, running) if security.uses_sasl else None
        doors[security.listener.name] = SecuredDoor(tls, known, strangers)
    _follow(services, certificates, running)
    return doors


def _listener_tls(
    security: ListenerSecurity, services: Services, certificates: Certificates, executor: Executor
) -> ListenerTls:
    watch = Watch.of(look_at(tls_settings(security)))
    try:
        loaded = load_tls(security)
    except ConfigError as wrong:
        # Set while the broker ran, and unusable since: what the file says was checked before anything was started.
        LOGGER.error("the static configuration's certificate is used: %s", wrong)
        layers = services.config.layers
        static = BrokerConfig.of(layers.static)
        loaded = load_tls(next(one for one in secured(static) if one.listener.name == security.listener.name))
    tls = ListenerTls(loaded, load_mapper(security), executor, is_principal=not security.uses_sasl)
    certificates.keep(security, tls, watch)
    return tls


def _follow(services: Services, certificates: Certificates, running: AsyncExitStack) -> None:
    services.certificates = certificates

    def follow(old: ClusterImage, new: ClusterImage) -> None:
        if old.broker_configs != new.broker_configs:
            certificates.reconfigured()

    services.controller.subscribe(follow)
    watching = asyncio.get_running_loop().create_task(certificates.run())
    running.callback(watching.cancel)
