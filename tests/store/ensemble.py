"""Real ZooKeeper servers on free ports of this machine. Their jars come through Maven, once per machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.apache_kafka import free_ports
from tests.clients.toolchains import built, run, sources
from tests.store.clock_jump import JumpingClock

SOURCE = Path(__file__).parent / "zookeeper_server"
TICK_MS = 500
SESSION_MS_MAX = 60_000  # longer than 20 ticks, which an ensemble allows by itself
START_S_MAX = 90.0


def is_available() -> bool:
    return shutil.which("java") is not None and shutil.which("mvn") is not None


def jars() -> Path:
    def build(target: Path) -> None:
        shutil.copy(SOURCE / "pom.xml", target)
        libs = target / "libs"
        run("mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={libs}", directory=target)

    return built("zookeeper", sources(SOURCE), build) / "libs"


class Ensemble:
    """Servers 0 to n-1, each of which can be killed and started again."""

    def __init__(
        self,
        directory: Path,
        *,
        count: int = 3,
        settings: Mapping[str, object] | None = None,
        java_options: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self._settings = dict(settings or {})
        self._java_options = list(java_options)
        self.clock = JumpingClock(directory)
        ports = free_ports(3 * count)
        self.ports = ports[:count]
        self._members = [(ports[count + 2 * n], ports[count + 2 * n + 1]) for n in range(count)]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        for number in range(count):
            self._configure(number)

    @property
    def connect(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    @property
    def running(self) -> set[int]:
        return set(self._processes)

    def start(self, number: int) -> None:
        home = self.directory / str(number)
        environment = {**os.environ, **(self.clock.environment if JumpingClock.is_available() else {})}
        options = ["-Xmx128M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        command = [
            "java",
            *options,
            *self._java_options,
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-Dzookeeper.fastleader.maxNotificationInterval=500",  # else a server alone asks less and less often
            "-cp",
            f"{jars()}/*",
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            str(home / "zoo.cfg"),
        ]
        with (home / "output.txt").open("ab") as output:
            self._processes[number] = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment
            )

    def kill(self, number: int) -> None:
        process = self._processes.pop(number)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for number in list(self._processes):
            self.kill(number)

    def role(self, number: int) -> str:
        """leader, follower, or nothing while it serves nobody."""
        answer = four_letters(self.ports[number], "srvr")
        return next((line.split(": ")[1] for line in answer.splitlines() if line.startswith("Mode: ")), "")

    def is_leader(self, number: int) -> bool:
        return self.role(number) == "leader"

    def leader(self) -> int:
        return next(number for number in self._processes if self.is_leader(number))

    def wait_until_all_serve(self) -> None:
        deadline_s = time.monotonic() + START_S_MAX
        while not all(self.role(number) for number in self._processes):
            ended = [number for number, process in self._processes.items() if process.poll() is not None]
            assert not ended, [(self.directory / str(number) / "output.txt").read_text() for number in ended]
            assert time.monotonic() < deadline_s, "ZooKeeper did not start"
            time.sleep(0.05)

    def _configure(self, number: int) -> None:
        home = self.directory / str(number)
        data = home / "data"
        data.mkdir(parents=True)
        (data / "myid").write_text(f"{number + 1}\n")
        settings = {
            "tickTime": TICK_MS,
            "maxSessionTimeout": SESSION_MS_MAX,
            "initLimit": 60,
            "syncLimit": 20,
            "dataDir": data,
            "clientPort": self.ports[number],
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
            "forceSync": "no",
            **{f"server.{n + 1}": f"127.0.0.1:{a}:{b}" for n, (a, b) in enumerate(self._members)},
            **self._settings,
        }
        (home / "zoo.cfg").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


@contextlib.contextmanager
def running_ensemble(directory: Path, **options: Any) -> Iterator[Ensemble]:
    ensemble = Ensemble(directory, **options)
    try:
        for number in range(len(ensemble.ports)):
            ensemble.start(number)
        ensemble.wait_until_all_serve()
        yield ensemble
    finally:
        ensemble.stop()


def four_letters(port: int, word: str) -> str:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(word.encode())
            return connection.makefile("r").read()
    except OSError:
        return ""
