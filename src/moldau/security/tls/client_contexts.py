"""The context of whoever connects to brokers, made anew when its settings or files have changed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from moldau.security.tls.changes import Watch, look_at
from moldau.security.tls.contexts import LoadedTls, client_tls
from moldau.security.tls.settings import TlsConfigError, TlsSettings

LOGGER = logging.getLogger(__name__)


class ClientTls:
    """Asked for each connection, which is when a new certificate counts. Those that stand go on with theirs."""

    __slots__ = ("_loaded", "_now_s", "_settings", "_told", "_tried", "_watch")

    def __init__(self, settings: Callable[[], TlsSettings], *, now_s: Callable[[], float]) -> None:
        """Raises TlsConfigError."""
        self._settings = settings
        self._now_s = now_s
        self._tried = settings()
        self._watch = Watch.of(look_at(self._tried))
        self._loaded = self._load(self._tried)
        self._told = ""

    def current(self) -> LoadedTls:
        """What can't be read is told once, and what was read before stays."""
        wanted, files = self._settings(), look_at(self._settings())
        if wanted != self._tried:
            self._tried, self._watch = wanted, Watch(None, files)
        self._watch, is_changed = self._watch.look(files)
        if is_changed:
            try:
                self._loaded = self._load(wanted)
            except (TlsConfigError, OSError, MemoryError) as wrong:
                self._tell(str(wrong))
            else:
                self._watch, self._told = Watch.of(files), ""
        return self._loaded

    def _tell(self, why: str) -> None:
        if why != self._told:
            LOGGER.warning("connections to brokers go on with the certificates that they have: %s", why)
        self._told = why

    def _load(self, settings: TlsSettings) -> LoadedTls:
        loaded = client_tls(settings, now_s=self._now_s())
        for warning in loaded.warnings:
            LOGGER.warning("%s", warning)
        return loaded
