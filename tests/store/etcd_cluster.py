"""Real etcd servers on free ports of this machine: the one on the PATH, or Debian's package, unpacked into a cache."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.apache_kafka import free_ports
from tests.clients.toolchains import built, run

START_S_MAX = 60.0


def is_available() -> bool:
    return bool(shutil.which("etcd") or (shutil.which("apt-get") and shutil.which("dpkg")))


def program() -> str:
    installed = shutil.which("etcd")
    if installed:
        return installed

    def build(target: Path) -> None:
        run("apt-get", "download", "etcd-server", directory=target)
        (package,) = target.glob("*.deb")
        run("dpkg", "-x", str(package), str(target), directory=target)

    return str(built("etcd", [], build) / "usr" / "bin" / "etcd")


class EtcdCluster:
    """Servers 0 to n-1, each of which can be killed and started again."""

    def __init__(self, directory: Path, *, count: int = 3) -> None:
        self.directory = directory
        ports = free_ports(2 * count)
        self.ports, self._peer_ports = ports[:count], ports[count:]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def connect(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    @property
    def running(self) -> set[int]:
        return set(self._processes)

    def start(self, number: int) -> None:
        members = ",".join(f"member-{n}=http://127.0.0.1:{port}" for n, port in enumerate(self._peer_ports))
        client, peer = (f"http://127.0.0.1:{ports[number]}" for ports in (self.ports, self._peer_ports))
        options = {
            "name": f"member-{number}",
            "data-dir": str(self.directory / str(number)),
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": members,
            "log-level": "error",
        }
        command = [program(), *(f"--{name}={value}" for name, value in options.items())]
        with (self.directory / f"output-{number}.txt").open("ab") as output:
            self._processes[number] = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )

    def kill(self, number: int) -> None:
        process = self._processes.pop(number)
        process.kill()
        process.wait()

    def stop(self) -> None:
        for number in list(self._processes):
            self.kill(number)

    def leader(self) -> int:
        return next(number for number in self._processes if self.is_leader(number))

    def is_leader(self, number: int) -> bool:
        status = self._status(number)
        return status is not None and bool(status["header"]["member_id"] == status.get("leader"))

    def wait_until_all_serve(self) -> None:
        deadline_s = time.monotonic() + START_S_MAX
        while not all((self._status(number) or {}).get("leader") for number in self._processes):
            assert time.monotonic() < deadline_s, "etcd did not start"
            time.sleep(0.05)

    def _status(self, number: int) -> dict[str, Any] | None:
        address = f"http://127.0.0.1:{self.ports[number]}/v3/maintenance/status"
        try:
            with urllib.request.urlopen(urllib.request.Request(address, b"{}"), timeout=5) as answer:
                status: dict[str, Any] = json.load(answer)
                return status
        except (OSError, ValueError):
            return None


@contextlib.contextmanager
def running_cluster(directory: Path) -> Iterator[EtcdCluster]:
    cluster = EtcdCluster(directory)
    try:
        for number in range(len(cluster.ports)):
            cluster.start(number)
        cluster.wait_until_all_serve()
        yield cluster
    finally:
        cluster.stop()
