"""Who asks, and how that one reaches the cluster: with the proxy's login, or with a login of his own."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.rest.producing.producers import Producers
from moldau.rest.settings import RestSettings
from moldau.rest.threads import Threads
from moldau.web import sessions
from moldau.web.sessions import SessionLimits

ANONYMOUS = "ANONYMOUS"


class Session(sessions.Session):
    """With producers. The user owns consumer instances, which are uses, and streams."""

    def __init__(self, principal: str, settings: RestSettings, client: Mapping[str, str], threads: Threads) -> None:
        super().__init__(principal, client, settings.timeout_s, threads.asking)
        self.settings = settings
        self.threads = threads
        self.producers = Producers({**client, **settings.producer}, settings, threads)

    def close(self) -> None:
        super().close()
        self.producers.close()


class Sessions(sessions.Sessions[Session]):
    """The proxy's own login, or that of each user."""

    def __init__(self, settings: RestSettings, threads: Threads) -> None:
        limits = SessionLimits(
            sessions_max=settings.sessions_max,
            idle_s=settings.session_idle_ms / 1_000,
            login_checked_s=settings.login_checked_s,
        )
        super().__init__(
            settings.client, lambda principal, client: Session(principal, settings, client, threads), limits
        )
        self.settings = settings
        self.threads = threads
        self._own: dict[str, Session] = {}
        self._shared: Session | None = None

    def own(self, principal: str) -> Session:
        """Everybody shares the proxy's connections; only what belongs to somebody is told apart."""
        if self._shared is None:
            self._shared = Session(ANONYMOUS, self.settings, self.settings.client, self.threads)
        if principal == ANONYMOUS:
            return self._shared
        if principal not in self._own:
            session = Session(principal, self.settings, self.settings.client, self.threads)
            session.clusters.close()
            session.clusters, session.producers = self._shared.clusters, self._shared.producers
            self._own[principal] = session
        return self._own[principal]

    def close(self) -> None:
        super().close()
        if self._shared is not None:
            self._shared.close()
