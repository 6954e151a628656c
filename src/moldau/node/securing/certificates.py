"""The certificates of listeners: loaded at the start, and again when their files or their configuration change.

A change that can't be used leaves the listener as it is, and is told once. Connections that exist are not touched.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from moldau.broker.network.secured.handshakes import ListenerTls
from moldau.core.clock import SystemClock
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigConflict, ConfigError
from moldau.core.config.listener_security import ListenerSecurity
from moldau.security.tls.changes import Watch, check_change, look_at
from moldau.security.tls.contexts import LoadedTls, server_tls
from moldau.security.tls.principal_mapping import PrincipalMapper, parse_mapping_rules
from moldau.security.tls.settings import TlsConfigError, TlsSettings

T = TypeVar("T")

LOGGER = logging.getLogger(__name__)

MS = 1_000
LOOK_S = 2.0  # between two looks at the files; a change is taken by the second look that sees it


def tls_settings(security: ListenerSecurity) -> TlsSettings:
    return TlsSettings.from_keys(security.tls_values())


def load_tls(security: ListenerSecurity) -> LoadedTls:
    """Reads files. ConfigError names the key as it is written, and the listener."""
    try:
        return server_tls(tls_settings(security), now_s=SystemClock().now_ms() / MS)
    except TlsConfigError as wrong:
        raise unusable(security, wrong) from None


def load_mapper(security: ListenerSecurity) -> PrincipalMapper:
    try:
        return parse_mapping_rules(security.text("ssl.principal.mapping.rules") or "DEFAULT")
    except TlsConfigError as wrong:
        raise unusable(security, wrong) from None


def unusable(security: ListenerSecurity, wrong: TlsConfigError) -> ConfigError:
    key = security.key_of(wrong.key)
    what = str(wrong).removeprefix(f"{wrong.key}: ")
    return ConfigConflict(key, None, f"{key}: {what} (listener {security.listener.name})")


def listener_security(config: BrokerConfig, name: str) -> ListenerSecurity:
    return next(ListenerSecurity(config, each) for each in config.listeners if each.name == name)


def load_change(security: ListenerSecurity, before: LoadedTls) -> LoadedTls:
    """What a running listener goes over to, by Kafka's rules for that. Reads files; raises ConfigError."""
    after = load_tls(security)
    try:
        check_change(
            before,
            after,
            allow_dn_changes=security.value("ssl.allow.dn.changes") is True,
            allow_san_changes=security.value("ssl.allow.san.changes") is True,
        )
    except TlsConfigError as wrong:
        raise unusable(security, wrong) from None
    return after


@dataclass(slots=True)
class _Kept:
    tls: ListenerTls
    settings: TlsSettings
    """Those in use, or last tried."""
    watch: Watch
    told: str = ""
    """Why the last change could not be taken."""

    def tell(self, why: str) -> None:
        if why != self.told:
            LOGGER.error("the certificate in use stays: %s", why)
        self.told = why


class Certificates:
    """Those of all listeners with TLS."""

    def __init__(self, current: Callable[[], BrokerConfig], executor: Executor) -> None:
        self._current = current
        self._executor = executor
        self._listeners: dict[str, _Kept] = {}
        self._has_changed = asyncio.Event()

    def keep(self, security: ListenerSecurity, tls: ListenerTls, watch: Watch) -> None:
        self._listeners[security.listener.name] = _Kept(tls, tls_settings(security), watch)
        tell_of("uses", security, tls.loaded)

    def reconfigured(self) -> None:
        self._has_changed.set()

    async def check(self, config: BrokerConfig) -> None:
        """ConfigError if this broker could not go over to the certificates of a configuration."""
        for name, kept in self._listeners.items():
            security = listener_security(config, name)
            if tls_settings(security) != kept.settings:
                await self._in_thread(partial(load_change, security, kept.tls.loaded))

    async def run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._has_changed.wait(), LOOK_S)
            self._has_changed.clear()
            try:
                for name, kept in self._listeners.items():
                    await self._look(listener_security(self._current(), name), kept)
            except Exception:  # whatever it is, certificates that come later are looked at, too
                LOGGER.exception("certificates could not be looked at")

    async def _look(self, security: ListenerSecurity, kept: _Kept) -> None:
        settings = tls_settings(security)
        files = await self._in_thread(partial(look_at, settings))
        if settings != kept.settings:
            kept.settings, kept.watch = settings, Watch(None, files)
        kept.watch, is_changed = kept.watch.look(files)
        if not is_changed:
            return
        try:
            kept.tls.loaded = await self._in_thread(partial(load_change, security, kept.tls.loaded))
        except (ConfigError, OSError, MemoryError) as wrong:
            kept.tell(str(wrong))
        else:
            kept.watch, kept.told = Watch.of(files), ""
            tell_of("goes over to", security, kept.tls.loaded)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)


def tell_of(does: str, security: ListenerSecurity, loaded: LoadedTls) -> None:
    own = loaded.chain[0]
    until = datetime.fromtimestamp(own.not_after_s, UTC).strftime("%Y-%m-%d")
    name = security.listener.name
    LOGGER.info("listener %s %s the certificate of %s, valid until %s", name, does, own.subject or "no name", until)
    for warning in loaded.warnings:
        LOGGER.warning("listener %s: %s", name, warning)
