"""Connections of one user to the cluster, for questions in Kafka's protocol: each is lent to one thread at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from moldau.client.cluster import Cluster, NoAnswer, NobodyListens, NotLetIn, Refused, Silence
from moldau.client.connection import Unsupported
from moldau.client.security import can_secure, security_of
from moldau.web.errors import ApiError
from moldau.web.kafka_errors import AUTHENTICATION, KAFKA_BAD_REQUEST, RETRIABLE, UNAVAILABLE, of_kafka
from moldau.wire.unencodable import EncodeError

T = TypeVar("T")

IDLE_S_MAX = 30.0  # well before a broker closes a connection that says nothing
KEPT_MAX = 4


class UnusableSettings(Exception):
    """No connection can be made by them; the message says why."""


def opened(settings: Mapping[str, str], timeout_s: float) -> Cluster:
    """Nothing is connected yet."""
    if settings.get("security.protocol", "plaintext").lower() != "plaintext" and not can_secure(settings):
        raise UnusableSettings(
            "needed are files that are there (ssl.ca.location and others), and for SASL sasl.username,"
            " sasl.password and sasl.mechanism, one of PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512;"
            " for OAUTHBEARER sasl.oauthbearer.method=oidc with .client.id, .client.secret and .token.endpoint.url"
        )
    return Cluster(
        settings["bootstrap.servers"],
        client_id=settings.get("client.id", "moldau"),
        timeout_s=timeout_s,
        security=security_of(tuple(sorted(settings.items()))),
    )


class Clusters:
    def __init__(self, settings: Mapping[str, str], timeout_s: float) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._idle: list[tuple[float, Cluster]] = []
        self._is_closed = False

    def ask(self, do: Callable[[Cluster], T]) -> T:
        """In a thread. What the cluster refuses, and a cluster that is not there, is an `ApiError`."""
        try:
            cluster, is_new = self._taken()
        except UnusableSettings as wrong:  # a file that was there at the start
            raise _problem(wrong) from None
        try:
            try:
                found = do(cluster)
            except NoAnswer:
                if is_new:
                    raise
                cluster.close()  # a broker may have gone since the connection was last used
                cluster = opened(self._settings, self._timeout_s)
                found = do(cluster)
        except BaseException as wrong:
            cluster.close()
            raise _problem(wrong) from wrong if isinstance(wrong, Exception) else None
        self._put_back(cluster)
        return found

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for _, cluster in idle:
            cluster.close()

    def _taken(self) -> tuple[Cluster, bool]:
        with self._lock:
            oldest_s = time.monotonic() - IDLE_S_MAX
            late = [cluster for since_s, cluster in self._idle if since_s < oldest_s]
            self._idle = [each for each in self._idle if each[0] >= oldest_s]
            found = self._idle.pop()[1] if self._idle else None
        for cluster in late:
            cluster.close()
        return (found, False) if found is not None else (opened(self._settings, self._timeout_s), True)

    def _put_back(self, cluster: Cluster) -> None:
        with self._lock:
            if not self._is_closed and len(self._idle) < KEPT_MAX:
                self._idle.append((time.monotonic(), cluster))
                return
        cluster.close()


def _problem(wrong: BaseException) -> BaseException:
    if isinstance(wrong, Refused):
        return of_kafka(wrong.code, str(wrong))
    if isinstance(wrong, UnusableSettings):
        return ApiError(UNAVAILABLE, f"the cluster cannot be reached: {wrong}")
    if isinstance(wrong, Unsupported | EncodeError):
        return ApiError(KAFKA_BAD_REQUEST, str(wrong).partition(" (version ")[0])
    if isinstance(wrong, NotLetIn):
        return ApiError(AUTHENTICATION, "the cluster does not accept this login")
    if isinstance(wrong, NoAnswer):
        code = UNAVAILABLE if isinstance(wrong, NobodyListens) else RETRIABLE
        told = "the cluster gave no answer in time" if isinstance(wrong, Silence) else str(wrong)
        return ApiError(code, told)
    return wrong
