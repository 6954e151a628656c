"""A Spark cluster of two hosts on one machine: loopback has many addresses.

Spark never tries a task twice at once on one host, so speculation needs two; `local` and `local-cluster` have one.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.apache_kafka import free_ports

HOSTS = ("127.0.0.1", "127.0.0.2")
START_S_MAX = 180.0
STOP_S_MAX = 30.0
EXECUTOR_MEMORY = "1g"

SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.05",
    "spark.speculation.quantile": "0.25",
    "spark.executor.memory": EXECUTOR_MEMORY,
    "spark.task.maxFailures": "8",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    master: str
    pids: list[int]


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    (port,) = free_ports(1)
    with ExitStack() as stack:
        own = ["--host", HOSTS[0], "--port", str(port), "--webui-port", "0"]
        stack.enter_context(_daemon("master.Master", own, folder=folder))
        _wait_for(port)
        pids = []
        for number, host in enumerate(HOSTS):
            own = ["--host", host, "--cores", "1", "--memory", EXECUTOR_MEMORY, "--webui-port", "0"]
            own += ["--work-dir", str(folder / f"work-{number}"), f"spark://{HOSTS[0]}:{port}"]
            pids.append(stack.enter_context(_daemon("worker.Worker", own, folder=folder)).pid)
        yield Cluster(f"spark://{HOSTS[0]}:{port}", pids)


@contextmanager
def _daemon(name: str, arguments: list[str], *, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    home = Path(pyspark.__file__).parent
    with (folder / "cluster.txt").open("ab") as output:
        process = subprocess.Popen(
            [str(home / "bin/spark-class"), f"org.apache.spark.deploy.{name}", *arguments],
            env={**os.environ, "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m"},
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


def _wait_for(port: int) -> None:
    deadline_s = time.monotonic() + START_S_MAX
    while True:
        try:
            with closing(socket.create_connection((HOSTS[0], port), 1)):
                return
        except OSError:
            assert time.monotonic() < deadline_s, "the cluster did not start"
            time.sleep(0.1)
