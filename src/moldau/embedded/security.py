"""`moldau.run(secure=True)`: the files of a secured broker, and the settings of clients that get in."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.security.starter.clients import Login


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Of clients of a broker or a cluster, ready for their constructors. Of an open one they are its address alone."""

    login: Login | None
    _servers: Callable[[], str] = field(repr=False)

    @property
    def confluent(self) -> dict[str, Any]:
        """Of confluent-kafka, and of everything else on librdkafka."""
        servers = self._servers()
        return {"bootstrap.servers": servers} if self.login is None else self.login.librdkafka(servers)

    @property
    def python(self) -> dict[str, Any]:
        """Of kafka-python and of aiokafka, as keyword arguments."""
        servers = self._servers()
        if self.login is None:
            return {"bootstrap_servers": servers}
        given = self.login.python(servers)
        context = ssl.create_default_context(cafile=given.pop("ssl_cafile"))
        return {**given, "ssl_context": context}

    @property
    def java(self) -> dict[str, str]:
        """Properties of Apache Kafka's own clients."""
        servers = self._servers()
        return {"bootstrap.servers": servers} if self.login is None else self.login.java(servers)

    def of_user(self, user: str, password: str) -> ClientSettings:
        """The same for somebody else. ValueError where nobody logs in."""
        if self.login is None:
            raise ValueError("nobody logs in to an open broker; start it with secure=True")
        return ClientSettings(replace(self.login, user=user, password=password), self._servers)


@dataclass(frozen=True, slots=True)
class Secured:
    folder: Path
    login: Login

    @property
    def arguments(self) -> list[str]:
        """Of `moldau start`."""
        return ["--secured-by", str(self.folder)]


def secured(data_dir: Path, *, host: str) -> Secured:
    """What secures brokers whose data is there; the same as before if it is there already."""
    from datetime import UTC, datetime

    from moldau.core.clock import SystemClock
    from moldau.security.starter.clients import Login
    from moldau.security.starter.files import ADMIN, FOLDER, prepared

    now = datetime.fromtimestamp(SystemClock().now_ms() // 1_000, UTC)
    files = prepared(data_dir / FOLDER, hosts=[host], now=now)
    return Secured(files.folder, Login(ADMIN, files.password(ADMIN), files.authority))
