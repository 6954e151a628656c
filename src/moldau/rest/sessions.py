"""Who asks, and how that one reaches the cluster: with the proxy's login, or with a login of his own."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from moldau.client.cluster import Cluster
from moldau.rest.clusters import Clusters
from moldau.rest.problems import AUTHENTICATION, not_allowed_in, too_many
from moldau.rest.producing.producers import Producers
from moldau.rest.settings import RestSettings
from moldau.rest.threads import Threads, in_thread
from moldau.web.errors import ApiError

T = TypeVar("T")

ANONYMOUS = "ANONYMOUS"


class Session:
    """One user's connections. The user owns consumer instances and streams by `principal`."""

    def __init__(self, principal: str, settings: RestSettings, client: Mapping[str, str], threads: Threads) -> None:
        self.principal = principal
        self.settings = settings
        self.client = client
        self.threads = threads
        self.clusters = Clusters(client, settings.timeout_s)
        self.producers = Producers({**client, **settings.producer}, settings, threads)
        self.used_s = self.checked_s = time.monotonic()
        self.uses = 0  # requests under way, and consumer instances
        self._cluster_id: str | None = None

    async def ask(self, do: Callable[[Cluster], T]) -> T:
        return await in_thread(self.threads.asking, lambda: self.clusters.ask(do))

    async def check(self) -> None:
        """Log in anew: connections that are there outlive a password. Raises ApiError 401, or why nobody knows."""
        fresh = Clusters(self.client, self.settings.timeout_s)
        try:
            await in_thread(self.threads.asking, lambda: fresh.ask(lambda cluster: cluster.metadata([])))
        finally:
            fresh.close()

    async def cluster_id(self) -> str:
        """A cluster keeps its id for life."""
        if self._cluster_id is None:
            self._cluster_id = await self.ask(lambda cluster: cluster.metadata([]).cluster_id or "")
        return self._cluster_id

    def close(self) -> None:
        self.clusters.close()
        self.producers.close()


class Sessions:
    """The proxy's own login, or one session for each user whom the cluster knows, until nothing was asked for long."""

    def __init__(self, settings: RestSettings, threads: Threads) -> None:
        self.settings = settings
        self.threads = threads
        self._salt = secrets.token_bytes(16)
        self._own: dict[str, Session] = {}
        self._of_users: dict[bytes, Session] = {}
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

    async def passed_through(self, user: str, password: str) -> Session:
        """ApiError 401 if the cluster does not take this login."""
        key = hashlib.blake2b(f"{len(user)}:{user}{password}".encode(), key=self._salt).digest()
        session = self._of_users.get(key)
        if session is None:
            if not user or not password or "\0" in user + password:
                raise not_allowed_in()
            self._close_idle()
            client = {**self.settings.client, "sasl.username": user, "sasl.password": password}
            session = Session(f"User:{user}", self.settings, client, self.threads)
            try:
                await session.cluster_id()
            except BaseException:
                session.close()
                raise
            session = self._kept(key, session)
        elif time.monotonic() - session.checked_s >= self.settings.login_checked_s:
            await self._check(key, session)
        session.used_s = time.monotonic()
        return session

    def _kept(self, key: bytes, session: Session) -> Session:
        """The first of those that came at once for one user."""
        kept = self._of_users.setdefault(key, session)
        if kept is not session:
            session.close()
        return kept

    async def _check(self, key: bytes, session: Session) -> None:
        before_s, session.checked_s = session.checked_s, time.monotonic()  # by one of those who ask at this moment
        try:
            await session.check()
        except BaseException as wrong:
            session.checked_s = before_s
            if isinstance(wrong, ApiError) and wrong.code == AUTHENTICATION and self._of_users.get(key) is session:
                self._of_users.pop(key).close()
            raise

    def _close_idle(self) -> None:
        oldest_s = time.monotonic() - self.settings.session_idle_ms / 1_000
        idle = [key for key, each in self._of_users.items() if not each.uses and each.used_s < oldest_s]
        if len(self._of_users) - len(idle) >= self.settings.sessions_max:
            free = [key for key, each in self._of_users.items() if not each.uses]
            if not free:
                raise too_many(f"{self.settings.sessions_max} users have connections to the cluster; try again later")
            idle.append(min(free, key=lambda key: self._of_users[key].used_s))
        for key in dict.fromkeys(idle):
            self._of_users.pop(key).close()

    def close(self) -> None:
        for each in (*self._of_users.values(), *([self._shared] if self._shared else [])):
            each.close()
