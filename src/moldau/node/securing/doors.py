"""The doors of listeners that are not plain, made from the configuration."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AsyncExitStack
from threading import Barrier

from moldau.broker.context import Services
from moldau.broker.network.listener import descriptors_for_connections
from moldau.broker.network.secured.door import SecuredDoor
from moldau.broker.network.secured.handshakes import ListenerTls
from moldau.broker.network.secured.strangers import Strangers
from moldau.broker.requests.logging_in import Checks
from moldau.controller.image import ClusterImage
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.core.config.listener_security import ListenerSecurity
from moldau.core.config.listeners import PLAINTEXT
from moldau.node.running import StartFailed
from moldau.node.securing.certificates import Certificates, load_mapper, load_tls, tls_settings
from moldau.node.securing.logins import check_logins, logins
from moldau.security.sasl.mechanism import GSSAPI, OAUTHBEARER
from moldau.security.tls.changes import Watch, look_at

LOGGER = logging.getLogger(__name__)

THREADS_MAX = 4  # more would only take cores from the loop
WAITING_THREADS = 2  # for files of certificates and for a Kerberos library, which may wait for a KDC
# Of the threads that shake hands, which compute without the interpreter's lock: the kernel would let them finish their
# slice while the loop waits. The one that checks tokens holds the lock: the loop would wait for it even longer.
# Measured: `python -m bench.attackers --secured --alone`.
NICE_STEPS = 5


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
    cores = len(os.sched_getaffinity(0))
    # With as many as cores, the loop waits for one that has the lock, which waits for a core that another computes on.
    shaking = _pool(max(1, min(cores - 1, THREADS_MAX)), "moldau-handshakes", running, initializer=_go_behind)
    waiting = _pool(WAITING_THREADS, "moldau-waiting", running)
    in_threads = {OAUTHBEARER: Checks(_pool(1, "moldau-tokens", running)), GSSAPI: Checks(waiting)}
    certificates = Certificates(lambda: services.config, waiting)
    doors, strangers = {}, Strangers(descriptors_for_connections())
    for security in secured(services.config):
        tls = _listener_tls(security, services, certificates, shaking) if security.uses_tls else None
        known = logins(security, services, in_threads, running) if security.uses_sasl else None
        doors[security.listener.name] = SecuredDoor(tls, known, strangers)
    _follow(services, certificates, running)
    return doors


def _pool(
    threads: int, name: str, running: AsyncExitStack, *, initializer: Callable[[], None] | None = None
) -> Executor:
    """With all its threads: work that is handed over while none can be started is done, and nobody hears of it."""
    executor = ThreadPoolExecutor(threads, thread_name_prefix=name, initializer=initializer)
    running.callback(executor.shutdown)
    met = Barrier(threads)
    try:
        for _ in range(threads):
            executor.submit(met.wait)
    except RuntimeError as wrong:
        met.abort()
        raise StartFailed(f"no thread can be started ({name}): {wrong}") from None
    return executor


def _go_behind() -> None:
    """The calling thread's priority: to Linux, each thread has its own."""
    with contextlib.suppress(OSError):  # a sandbox may forbid it, and a pool whose threads can't begin is broken
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + NICE_STEPS)


def _listener_tls(
    security: ListenerSecurity, services: Services, certificates: Certificates, shaking: Executor
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
    tls = ListenerTls(loaded, load_mapper(security), shaking, is_principal=not security.uses_sasl)
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
