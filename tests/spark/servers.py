"""Servers of Spark in processes of their own: started, waited for, and gone with the block."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pyspark

from tests.brokers import PROJECT

START_S_MAX = 240.0
STOP_S_MAX = 30.0
INSTALLED = Path(pyspark.__file__).parent


@contextmanager
def spark_server(
    program: str,
    arguments: Sequence[str],
    *,
    output: Path,
    home: Path = INSTALLED,
    environment: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A program of Spark's `bin`; it works where its output goes."""
    with output.open("ab") as stream:
        process = subprocess.Popen(
            [str(home / "bin" / program), *arguments],
            env={**os.environ, "SPARK_HOME": str(home), **(environment or {})},
            cwd=output.parent,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for_port(host: str, port: int, process: subprocess.Popen[bytes], *, output: Path) -> None:
    """Until the server listens; one that ended tells why."""
    deadline_s = time.monotonic() + START_S_MAX
    while True:
        try:
            with closing(socket.create_connection((host, port), 1)):
                return
        except OSError:
            assert process.poll() is None, output.read_text(errors="replace")[-4000:]
            assert time.monotonic() < deadline_s, "the server did not start"
            time.sleep(0.1)


def home_of_its_own(folder: Path) -> Path:
    """The installed Spark under another path: what runs in `local-cluster` leaves its files in Spark's home."""
    home = folder / "home"
    home.mkdir()
    for path in INSTALLED.iterdir():
        (home / path.name).symlink_to(path)
    return home


def fill_environment(folder: Path) -> None:
    """In the place of pip: what would be downloaded is lent by the environment of the tests."""
    site = next((folder / "lib").glob("python*")) / "site-packages"
    lent = [path for path in sys.path if path.endswith(("site-packages", "/src"))]
    (site / "lent.pth").write_text("\n".join([*lent, str(PROJECT / "src")]) + "\n")
    (site / "pyspark").symlink_to(INSTALLED)
    (folder / "bin" / "moldau").write_text('#!/bin/sh\nexec "$(dirname "$0")/python" -m moldau "$@"\n')
    (folder / "bin" / "moldau").chmod(0o755)
    shutil.copy(PROJECT / "src" / "moldau" / "spark" / "moldau-python", folder / "bin")
    (folder / "bin" / "spark-class").symlink_to(INSTALLED / "bin" / "spark-class")
