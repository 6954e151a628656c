"""Users of the cluster at a server of ours: each has a login of his own there, and connections by it."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from starlette.requests import Request

from moldau.client.cluster import Cluster
from moldau.security.principals import USER_TYPE, Principal
from moldau.web.authentication import basic_pair
from moldau.web.clusters import Clusters
from moldau.web.errors import ApiError
from moldau.web.kafka_errors import AUTHENTICATION, not_allowed_in, too_many
from moldau.web.logins import EVERYTHING, Login

T = TypeVar("T")
S = TypeVar("S", bound="Session")


class Session:
    """One user's connections. What the user owns is told by `principal`."""

    def __init__(self, principal: str, client: Mapping[str, str], timeout_s: float, pool: ThreadPoolExecutor) -> None:
        self.principal = principal
        self.client = client
        self.timeout_s = timeout_s
        self.clusters = Clusters(client, timeout_s)
        self.used_s = self.checked_s = time.monotonic()
        self.uses = 0  # of what goes on, for which the connections are kept
        self._pool = pool
        self._cluster_id: str | None = None

    async def ask(self, do: Callable[[Cluster], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: self.clusters.ask(do))

    async def check(self) -> None:
        """Log in anew: connections that are there outlive a password. Raises ApiError 401, or why nobody knows."""
        fresh = Clusters(self.client, self.timeout_s)
        try:
            await asyncio.get_running_loop().run_in_executor(
                self._pool, lambda: fresh.ask(lambda cluster: cluster.metadata([]))
            )
        finally:
            fresh.close()

    async def cluster_id(self) -> str:
        """A cluster keeps its id for life."""
        if self._cluster_id is None:
            self._cluster_id = await self.ask(lambda cluster: cluster.metadata([]).cluster_id or "")
        return self._cluster_id

    def close(self) -> None:
        self.clusters.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    sessions_max: int = 200  # users of the cluster with connections at one time
    idle_s: float = 300.0
    login_checked_s: float = 300.0  # after which the cluster is asked again whether a user's password still holds


class Sessions(Generic[S]):
    """One session for each user whom the cluster knows, until nothing was asked for long."""

    def __init__(
        self, client: Mapping[str, str], make: Callable[[str, Mapping[str, str]], S], limits: SessionLimits
    ) -> None:
        """`make` gets a principal, and the client's settings with its login."""
        self._client = client
        self._make = make
        self._limits = limits
        self._salt = secrets.token_bytes(16)
        self._of_users: dict[bytes, S] = {}

    async def of_request(self, request: Request) -> S:
        """401 if somebody has to say who he is, and did not."""
        pair = basic_pair(request.headers.get("authorization", ""))
        if pair is None:
            raise not_allowed_in()
        return await self.passed_through(*pair)

    async def passed_through(self, user: str, password: str) -> S:
        """ApiError 401 if the cluster does not take this login."""
        key = hashlib.blake2b(f"{len(user)}:{user}{password}".encode(), key=self._salt).digest()
        session = self._of_users.get(key)
        if session is None:
            if not user or not password or "\0" in user + password:
                raise not_allowed_in()
            self._close_idle()
            made = self._make(f"User:{user}", {**self._client, "sasl.username": user, "sasl.password": password})
            try:
                await made.cluster_id()
            except BaseException:
                made.close()
                raise
            session = self._kept(key, made)
        elif time.monotonic() - session.checked_s >= self._limits.login_checked_s:
            await self._check(key, session)
        session.used_s = time.monotonic()
        return session

    def _kept(self, key: bytes, session: S) -> S:
        """The first of those that came at once for one user."""
        kept = self._of_users.setdefault(key, session)
        if kept is not session:
            session.close()
        return kept

    async def _check(self, key: bytes, session: S) -> None:
        before_s, session.checked_s = session.checked_s, time.monotonic()  # by one of those who ask at this moment
        try:
            await session.check()
        except BaseException as wrong:
            session.checked_s = before_s
            if isinstance(wrong, ApiError) and wrong.code == AUTHENTICATION and self._of_users.get(key) is session:
                self._of_users.pop(key).close()
            raise

    def _close_idle(self) -> None:
        oldest_s = time.monotonic() - self._limits.idle_s
        idle = [key for key, each in self._of_users.items() if not each.uses and each.used_s < oldest_s]
        if len(self._of_users) - len(idle) >= self._limits.sessions_max:
            free = [key for key, each in self._of_users.items() if not each.uses]
            if not free:
                raise too_many(f"{self._limits.sessions_max} users have connections to the cluster; try again later")
            idle.append(min(free, key=lambda key: self._of_users[key].used_s))
        for key in dict.fromkeys(idle):
            self._of_users.pop(key).close()

    def close(self) -> None:
        for each in self._of_users.values():
            each.close()


class PassthroughJudge(Generic[S]):
    """The cluster says who is let in."""

    def __init__(self, sessions: Sessions[S]) -> None:
        self.sessions = sessions

    async def judge(self, user: str, password: str) -> Login | None:
        try:
            await self.sessions.passed_through(user, password)
        except ApiError as wrong:
            if wrong.code == AUTHENTICATION:
                return None
            raise
        return Login(Principal(USER_TYPE, user), EVERYTHING)
