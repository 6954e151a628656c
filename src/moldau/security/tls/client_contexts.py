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

    __slots__ = ("_loaded", "_now_s", "_settings", "_tried", "_watch")

    def __init__(self, settings: Callable[[], TlsSettings], *, now_s: Callable[[], float]) -> None:
        """Raises TlsConfigError."""
        self._settings = settings
        self._now_s = now_s
        self._tried = settings()
        self._watch = Watch.of(look_at(self._tried))
        self._loaded = self._load(self._tried)

    def current(self) -> LoadedTls:
        """What can't be read is told once, and what was read before stays."""
        wanted, files = self._settings(), look_at(self._settings())
        is_changed = wanted != self._tried
        self._tried = wanted
        if is_changed:
            self._watch = Watch.of(files)
        else:
            self._watch, is_changed = self._watch.look(files)
        if is_changed:
            try:
                self._loaded = self._load(wanted)
            except TlsConfigError as wrong:
                LOGGER.warning("connections to brokers go on with the certificates that they have: %s", wrong)
        return self._loaded

    def _load(self, settings: TlsSettings) -> LoadedTls:
        loaded = client_tls(settings, now_s=self._now_s())
        for warning in loaded.warnings:
            LOGGER.warning("%s", warning)
        return loaded
