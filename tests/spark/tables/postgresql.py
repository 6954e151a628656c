"""A PostgreSQL of the test run's own: a cluster in a temporary folder, on a free port, gone afterwards."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.debian import install

INSTALLED = Path("/usr/lib/postgresql")


def programs() -> Path | None:
    """The newest version's folder of programs."""
    versions = sorted(INSTALLED.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3].partition(".")[0]))
    return versions[-1].parent if versions else None


def installed_programs() -> Path:
    if programs() is None and os.geteuid() == 0:
        # The package starts a cluster of its own at once unless told before.
        settings = Path("/etc/postgresql-common/createcluster.conf")
        if not settings.exists():
            settings.parent.mkdir(parents=True, exist_ok=True)
            settings.write_text("create_main_cluster = false\n")
    install("postgresql", is_there=lambda: programs() is not None)
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed, and only root can install it, with apt-get install postgresql")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Server:
    """A PostgreSQL that can be crashed: it comes back with what was durable, as after a loss of power."""

    url: str
    folder: Path
    port: int

    def start(self) -> None:
        settings = f"-c listen_addresses=127.0.0.1 -p {self.port} -k {self.folder} -c fsync=off"
        self.run("pg_ctl", "-D", str(self.data), "-o", settings, "-l", str(self.folder / "log"), "-w", "start")

    def crash(self) -> None:
        self.run("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "stop")

    def restart_after_crash(self) -> None:
        self.crash()
        self.start()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def run(self, program: str, *arguments: str) -> None:
        # The server refuses to run as root.
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        command = [*user, str(installed_programs() / program), *arguments]
        subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def postgresql_server() -> Iterator[Server]:
    """A new and empty one."""
    installed_programs()
    folder, port = Path(tempfile.mkdtemp(prefix="moldau-postgresql-")), free_port()
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    server = Server(f"postgresql://moldau@127.0.0.1:{port}/postgres", folder, port)
    try:
        server.run("initdb", "-D", str(server.data), "-A", "trust", "-U", "moldau", "--no-sync")
        server.start()
        try:
            yield server
        finally:
            server.crash()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_postgresql() -> Iterator[str]:
    """The URL of a new and empty database."""
    with postgresql_server() as server:
        yield server.url
