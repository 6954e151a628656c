"""Clients of several languages on secured listeners: one request is one session of a producer and a member of a group.

A program reads a JSON object per line and answers each with `{"ok": {"read": values}}` or, as the drivers do, with
`{"error": {"code": ..., "name": ..., "message": ...}}`, in the client's own words. A request has

    bootstrap, protocol, mechanism      where to, and how; no mechanism for SSL
    trusted, certificate                PEM files: authorities, and the client's own key and certificate, if any
    user, password or token             who
    topic, group                        of its own for each session
    batches, pause_ms                   lists of values. Each is produced and acknowledged, read by the group and
                                        committed; then comes a pause. All go over the same producer and consumer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from tests.clients import toolchains
from tests.clients.drivers import Driver, LineProcess


def python_session(name: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-W", "ignore", "-m", f"tests.clients.python.{name}_session"]


SESSIONS: dict[str, Callable[[], list[str]]] = {
    "confluent": python_session("confluent"),
    "kafka-python": python_session("kafka_python"),
    "aiokafka": python_session("aiokafka"),
    "kafkajs": toolchains.javascript_session,
    "franz-go": toolchains.go_session,
    "java": toolchains.java_session,
    "java-3.9": toolchains.spark_java_session,
}


@dataclass(frozen=True, slots=True)
class Login:
    """How a client comes to a listener, and as whom."""

    bootstrap: str
    protocol: str
    trusted: str
    mechanism: str | None = None
    certificate: str | None = None
    user: str | None = None
    password: str | None = None
    token: str | None = None


class Sessions:
    """The programs, each started when a test first asks for it."""

    def __init__(self) -> None:
        self._started: dict[str, Driver] = {}

    def hold(self, client: str, login: Login, topic: str, batches: list[list[str]], *, pause_ms: int = 0) -> list[str]:
        """What the group read. ClientError, in the client's own words, if it gets that far."""
        if client not in self._started:
            self._started[client] = Driver(LineProcess(SESSIONS[client]))
        who = {name: getattr(login, name) for name in Login.__dataclass_fields__}
        done = self._started[client].perform(
            "session", topic=topic, group=topic, batches=batches, pause_ms=pause_ms, **who
        )
        return list(done["read"])

    def close(self) -> None:
        for driver in self._started.values():
            driver.process.close()
