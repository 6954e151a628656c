"""A PostgreSQL of the test run's own: a cluster in a temporary folder, on a free port, gone afterwards."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

INSTALLED = Path("/usr/lib/postgresql")
INSTALL_S_MAX = 300


def programs() -> Path | None:
    """The newest version's folder of programs."""
    versions = sorted(INSTALLED.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3].partition(".")[0]))
    return versions[-1].parent if versions else None


def installed_programs() -> Path:
    found = programs()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        # The package starts a cluster of its own at once unless told before.
        settings = Path("/etc/postgresql-common/createcluster.conf")
        if not settings.exists():
            settings.parent.mkdir(parents=True, exist_ok=True)
            settings.write_text("create_main_cluster = false\n")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = "apt-get update -q && apt-get install -q -y --no-install-recommends postgresql"
        subprocess.run(install, shell=True, env=environment, capture_output=True, timeout=INSTALL_S_MAX, check=False)
        found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed, and only root can install it, with apt-get install postgresql")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_postgresql() -> Iterator[str]:
    """The URL of a new and empty database."""
    binaries, folder = installed_programs(), Path(tempfile.mkdtemp(prefix="moldau-postgresql-"))
    # The server refuses to run as root.
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    if user:
        shutil.chown(folder, "postgres", "postgres")
    port, data = free_port(), folder / "data"

    def run(program: str, *arguments: str) -> None:
        subprocess.run([*user, str(binaries / program), *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    try:
        run("initdb", "-D", str(data), "-A", "trust", "-U", "moldau", "--no-sync")
        settings = f"-c listen_addresses=127.0.0.1 -p {port} -k {folder} -c fsync=off"
        run("pg_ctl", "-D", str(data), "-o", settings, "-l", str(folder / "log"), "-w", "start")
        try:
            yield f"postgresql://moldau@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
