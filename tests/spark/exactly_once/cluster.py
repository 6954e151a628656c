"""A Spark cluster of two hosts on one machine: loopback has many addresses.

Spark never tries a task twice at once on one host, so speculation needs two; `local` and `local-cluster` have one.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.apache_kafka import free_ports
from tests.spark.servers import spark_server, wait_for_port

HOSTS = ("127.0.0.1", "127.0.0.2")
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
    output = folder / "cluster.txt"
    with ExitStack() as stack:

        def started(name: str, own: list[str]) -> subprocess.Popen[bytes]:
            arguments = [f"org.apache.spark.deploy.{name}", *own, "--webui-port", "0"]
            server = spark_server("spark-class", arguments, output=output, environment={"SPARK_DAEMON_MEMORY": "256m"})
            return stack.enter_context(server)

        address = f"spark://{HOSTS[0]}:{port}"
        master = started("master.Master", ["--host", HOSTS[0], "--port", str(port)])
        wait_for_port(HOSTS[0], port, master, output=output)
        pids = []
        for number, host in enumerate(HOSTS):
            own = ["--host", host, "--cores", "1", "--memory", EXECUTOR_MEMORY]
            own += ["--work-dir", str(folder / f"work-{number}"), address]
            pids.append(started("worker.Worker", own).pid)
        yield Cluster(address, pids)
