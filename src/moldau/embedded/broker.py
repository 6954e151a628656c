"""One broker in a process of its own."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from moldau.embedded.overrides import as_property, check_overrides
from moldau.embedded.process import START_S_MAX, Address, BrokerFailed, BrokerProcess, reachable
from moldau.embedded.requests import create_topic, set_password
from moldau.embedded.security import ClientSettings, secured

if TYPE_CHECKING:
    from moldau.embedded.services import Service, Services
    from moldau.security.starter.clients import Login


def run_broker(
    *,
    overrides: Mapping[str, object] | None,
    data_dir: str | os.PathLike[str] | None,
    host: str,
    port: int,
    properties: str | os.PathLike[str] | None,
    timeout_s: float,
    secure: bool = False,
) -> EmbeddedBroker:
    """See `moldau.run`."""
    check_overrides(overrides or {})
    scratch = Path(tempfile.mkdtemp(prefix="moldau-"))
    data = scratch / "data" if data_dir is None else Path(data_dir)
    command = [*start_command(properties), "--host", host, "--port", str(port), "--data-dir", os.fspath(data)]
    command += ["--scratch", os.fspath(scratch)]
    for key, value in (overrides or {}).items():
        command += ["--override", f"{key}={as_property(value)}"]
    process = BrokerProcess(command, scratch=scratch)
    login = None
    try:
        if secure:
            security = secured(data, host=host)
            command += security.arguments
            login = security.login
        process.start(timeout_s=timeout_s)
    except BaseException:
        process.dispose()
        raise
    return EmbeddedBroker(process, data_dir=data, login=login)


def start_command(properties: str | os.PathLike[str] | None, *, program: str = "moldau") -> list[str]:
    """What starts any broker from a program; `program` is the module that takes the place of the `moldau` command."""
    command = [sys.executable, "-P", "-m", program, "start"]
    if properties is not None:
        command.append(os.fspath(properties))
    # KAFKA_* in the user's shell is for clients, or for another broker: a test must not depend on it.
    return [*command, "--no-kafka-environment", "--stop-with-stdin"]


def _dispose(process: BrokerProcess, beside: list[Services]) -> None:
    for each in beside:
        each.end()
    process.dispose()


class EmbeddedBroker:
    """A broker that `run` started; it ends when the process that started it ends, however that happens."""

    def __init__(self, process: BrokerProcess, *, data_dir: Path, login: Login | None = None) -> None:
        self.data_dir = data_dir
        self.login = login
        self._process = process
        self._beside: list[Services] = []
        # A broker that nobody holds any more ends too, and its temporary folder goes.
        self._dispose = weakref.finalize(self, _dispose, process, self._beside)

    @property
    def addresses(self) -> dict[str, Address]:
        """Where each listener is reached, by its name."""
        return {name: reachable(listener) for name, listener in self._process.listeners.items()}

    @property
    def bootstrap_servers(self) -> str:
        """What clients call `bootstrap.servers`: the first listener."""
        return str(self.address)

    @property
    def clients(self) -> ClientSettings:
        """The settings that clients need: `Producer(broker.clients.confluent)`. Of a secured broker, the admin's."""
        return ClientSettings(self.login, lambda: self.bootstrap_servers)

    @property
    def metrics_url(self) -> str | None:
        """Where Prometheus reads its metrics, with `/health` and `/ready` beside them; None where they are off."""
        return self._process.metrics

    @property
    def registry(self) -> Service:
        """The schema registry of `run(registry=True)`, with its `url` and `settings`."""
        return self.services["registry"]

    @property
    def rest(self) -> Service:
        """The REST proxy of `run(rest=True)`, with its `url`."""
        return self.services["rest"]

    @property
    def services(self) -> Services:
        """What stands beside the broker, and goes with it."""
        if not self._beside:
            from moldau.embedded.services import Services

            self._beside.append(Services(self._process.scratch))
        return self._beside[0]

    @property
    def host(self) -> str:
        return self.address.host

    @property
    def port(self) -> int:
        return self.address.port

    @property
    def pid(self) -> int:
        """The broker's process; another one after `restart()`."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    @property
    def address(self) -> Address:
        """Where the first listener is reached."""
        return next(iter(self.addresses.values()))

    def output(self) -> str:
        """What the broker has printed so far, its log too; also after its end."""
        return self._process.output()

    def create_topic(
        self, name: str, *, partitions: int | None = None, config: Mapping[str, object] | None = None
    ) -> None:
        """Create a topic; without `partitions` it has the broker's `num.partitions`. Raises RequestFailed."""
        if not self.is_running:
            raise BrokerFailed(f"the broker does not run; it ended with exit code {self._process.exit_code}")
        create_topic(self.address, name, partitions=partitions, config=config or {}, login=self.login)

    def add_user(self, name: str, password: str) -> ClientSettings:
        """A user of a secured broker who may do nothing yet, or another password of one. Raises RequestFailed."""
        clients = self.clients.of_user(name, password)
        assert self.login is not None, "of_user refuses an open broker"
        set_password(self.address, self.login, user=name, password=password)
        return clients

    def stop(self) -> None:
        """End the broker as SIGTERM does, its data flushed; a second call does nothing."""
        self._process.end(signal.SIGTERM)

    def kill(self) -> None:
        """End the broker at once, as kill -9 and a crash do."""
        self._process.end(signal.SIGKILL)

    def restart(self, *, timeout_s: float = START_S_MAX) -> None:
        """Start the broker again with the same data on the same port; one that runs is stopped. Raises BrokerFailed."""
        if not self._dispose.alive:
            is_kept = self._process.scratch not in self.data_dir.parents
            again = f"moldau.run(data_dir={str(self.data_dir)!r}) starts another one with its data"
            lost = "its temporary folder is gone; a data_dir that is given to run() is kept"
            raise BrokerFailed(
                f"the broker can't be started again: its `with` block has ended; {again if is_kept else lost}"
            )
        self.stop()
        self._process.start(timeout_s=timeout_s)

    def dispose(self) -> None:
        """End the broker for good, and remove its temporary folder."""
        self._dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        self._dispose()

    def __repr__(self) -> str:
        state = f"pid={self.pid}" if self.is_running else f"exit code {self._process.exit_code}"
        return f"EmbeddedBroker({self.bootstrap_servers}, {state}, data_dir={str(self.data_dir)!r})"
