"""What may stand beside an embedded broker: a schema registry and a REST proxy, each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.embedded.process import BrokerFailed, end_process, read_output

if TYPE_CHECKING:
    from moldau.embedded.security import ClientSettings
    from moldau.security.starter.clients import Login

REGISTRY, REST = "registry", "rest"
OWN_VARIABLES = "MOLDAU_"  # of the user's shell: they are for tools, or for another cluster
LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class ServiceFiles:
    """What a process is told by files, for its command line is read by anyone."""

    folder: Path

    @property
    def client(self) -> Path:
        return self.folder / "client.properties"

    @property
    def users(self) -> Path:
        return self.folder / "users"

    @property
    def rest(self) -> Path:
        return self.folder / "rest.properties"

    def ready(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def output(self, name: str) -> Path:
        return self.folder / f"{name}.txt"


class Service:
    """A registry or a REST proxy that `run` started; it ends with its broker, and with the process that started it."""

    def __init__(self, name: str, arguments: list[str], *, files: ServiceFiles, login: Login | None) -> None:
        self.name = name
        self.url = ""
        self._arguments = arguments
        self._files = files
        self._login = login
        self._last_output = ""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """By the names of Confluent's clients: `SchemaRegistryClient(broker.registry.settings)`."""
        if self._login is None:
            return {"url": self.url}
        who = f"{self._login.user}:{self._login.password}"
        return {"url": self.url, "basic.auth.user.info": who, "ssl.ca.location": str(self._login.authority)}

    @property
    def pid(self) -> int:
        assert self._process is not None, "a service is handed out after its start"
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return None if self._process is None else self._process.poll()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def output(self) -> str:
        """What it has printed so far, also after its end."""
        return read_output(self._files.output(self.name)) or self._last_output

    def start(self, *, timeout_s: float, is_shown: bool = False) -> None:
        """Returns once it answers. What it logs goes to a file, or is shown where ours is. Raises BrokerFailed."""
        ready = self._files.ready(self.name)
        ready.unlink(missing_ok=True)
        with self._files.output(self.name).open("ab") as printed:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "moldau", self.name, *self._arguments, "--ready-file", str(ready)],
                stdin=subprocess.PIPE,  # it ends when this pipe does
                stdout=printed,
                stderr=None if is_shown else subprocess.STDOUT,
                env={key: value for key, value in os.environ.items() if not key.startswith(OWN_VARIABLES)},
                cwd=self._files.folder,  # where no project's file is
                start_new_session=True,
            )
        deadline_s = time.monotonic() + timeout_s
        while not ready.exists():
            if not self.is_running:
                raise BrokerFailed(
                    f"moldau {self.name} ended with exit code {self._process.returncode}:\n{self.output()}"
                )
            if time.monotonic() > deadline_s:
                raise BrokerFailed(f"moldau {self.name} did not answer within {timeout_s:g} s:\n{self.output()}")
            time.sleep(LOOK_S)
        self.url = json.loads(ready.read_text())["url"]

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal and wait for the end; does nothing when it has ended."""
        if self._process is None:
            return
        end_process(self._process, how)
        self._last_output = self.output()

    def __repr__(self) -> str:
        state = f"pid={self.pid}" if self.is_running else "not running"
        return f"Service({self.name}, {self.url}, {state})"


class Services:
    """Those of one broker or cluster, by their names."""

    def __init__(self, scratch: Path) -> None:
        self._files = ServiceFiles(scratch / "services")
        self._started: dict[str, Service] = {}
        self._owner_pid = os.getpid()

    def __getitem__(self, name: str) -> Service:
        if name not in self._started:
            raise BrokerFailed(f"no {name} was started; ask for one: moldau.run({name}=True)")
        return self._started[name]

    def __contains__(self, name: str) -> bool:
        return name in self._started

    def start(
        self, name: str, clients: ClientSettings, *, host: str, port: int = 0, timeout_s: float, is_shown: bool = False
    ) -> None:
        """For a cluster that these settings reach. Raises BrokerFailed."""
        login, files = clients.login, self._files
        files.folder.mkdir(mode=0o700, exist_ok=True)
        _write(files.client, "".join(f"{key}={value}\n" for key, value in clients.confluent.items()))
        arguments = ["--host", host, "--port", str(port), "--stop-with-stdin", "--command-config", str(files.client)]
        if login is not None:
            _write(files.users, _users_text(login))
            arguments += ["--users", str(files.users)]
        arguments += self._of_rest(login) if name == REST else _of_registry(login)
        self._started[name] = Service(name, arguments, files=files, login=login)
        self._started[name].start(timeout_s=timeout_s, is_shown=is_shown)

    def _of_rest(self, login: Login | None) -> list[str]:
        """How it finds the registry beside it, and logs in there."""
        url = self._started[REGISTRY].url if REGISTRY in self._started else None
        if login is None:
            return [] if url is None else ["--registry", url]
        text = f"ssl.keystore.type=PEM\nssl.keystore.location={_server(login)}\n"
        if url is not None:
            text += (
                f"schema.registry.url={url}\nschema.registry.ssl.ca.location={login.authority}\n"
                "schema.registry.basic.auth.credentials.source=USER_INFO\n"
                f"schema.registry.basic.auth.user.info={login.user}:{login.password}\n"
            )
        _write(self._files.rest, text)
        return ["--config", str(self._files.rest)]

    def end(self) -> None:
        """The last one first; only the process that started them may, not one forked from it."""
        if os.getpid() == self._owner_pid:
            for each in reversed(self._started.values()):
                each.end()

    def output(self) -> str:
        return "\n".join(f"{name}:\n{each.output()}" for name, each in self._started.items())


def _of_registry(login: Login | None) -> list[str]:
    if login is None:
        return []
    return ["--tls-certificate", str(_server(login)), "--tls-key", str(_server(login))]


def _server(login: Login) -> Path:
    """The file with the brokers' key and certificate, which is good for whatever else answers beside them."""
    return login.authority.parent / "server.pem"


def _users_text(login: Login) -> str:
    from moldau.web.logins import hashed

    return f"{login.user}: {hashed(login.password)}, admin\n"


def _write(path: Path, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
