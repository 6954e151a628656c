"""A Spark Connect server in processes of its own, and a session that reaches it over the network."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from tests.apache_kafka import free_ports

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

START_S_MAX = 240.0
STOP_S_MAX = 30.0
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connected(master: str, folder: Path) -> Iterator[SparkSession]:
    from pyspark.sql.connect.session import SparkSession

    (port,) = free_ports(1)
    with _server(master, port, folder) as process:
        _wait_for(port, process, folder / "connect.txt")
        # A plain `SparkSession.builder.remote` refuses where this process has a session of the other kind as well.
        session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
        try:
            yield session
        finally:
            session.stop()


@contextmanager
def _server(master: str, port: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    home = home_of_its_own(folder)
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    command = [str(home / "bin/spark-submit"), "--master", master, "--class", SERVER]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    with (folder / "connect.txt").open("wb") as output:
        process = subprocess.Popen(
            # The name of the class decides; the file that a submission must name is never opened.
            [*command, "spark-internal"],
            env={**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
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


def home_of_its_own(folder: Path) -> Path:
    """The installed Spark under another path: what runs in `local-cluster` leaves its files in Spark's home."""
    home = folder / "home"
    home.mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        (home / path.name).symlink_to(path)
    return home


def _wait_for(port: int, process: subprocess.Popen[bytes], output: Path) -> None:
    deadline_s = time.monotonic() + START_S_MAX
    while True:
        try:
            with closing(socket.create_connection(("127.0.0.1", port), 1)):
                return
        except OSError:
            assert process.poll() is None, output.read_text(errors="replace")[-4000:]
            assert time.monotonic() < deadline_s, "the server did not start"
            time.sleep(0.1)
