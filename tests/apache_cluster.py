"""Three brokers of Apache Kafka that are its controllers too (KRaft), as the oracle of what a cluster does."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.apache_kafka import STOP_S_MAX, ask_metadata, free_ports, java_command, tool

CLUSTER_ID = "bW9sZGF1LW9yYWNsZS0wMw"
START_S_MAX = 300.0  # three JVMs on a machine that is busy otherwise
SMALL_JVM = ("-Xmx256M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class ApacheCluster:
    """`count` nodes, each with its data and output in a folder of `directory`, which is removed with the cluster.

    The methods are those of `moldau.EmbeddedCluster` that tests of both kinds use.
    """

    def __init__(
        self,
        *,
        count: int = 3,
        first_id: int = 1,
        properties: Mapping[str, object] | None = None,
        jvm: Sequence[str] = SMALL_JVM,
    ) -> None:
        self.ids = range(first_id, first_id + count)
        self.directory = Path(tempfile.mkdtemp(prefix="apache-cluster-"))
        self.properties = dict(properties or {})
        self._jvm = jvm
        ports = free_ports(2 * count)
        self.ports = dict(zip(self.ids, ports[:count], strict=True))
        self._controller_ports = dict(zip(self.ids, ports[count:], strict=True))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    @property
    def controllers(self) -> dict[int, str]:
        """The addresses that controllers answer at, by their ids."""
        return {node_id: f"127.0.0.1:{port}" for node_id, port in self._controller_ports.items()}

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes.values()]

    def pid_of(self, node_id: int) -> int:
        return self._processes[node_id].pid

    def format(self) -> None:
        """By Apache Kafka's tool for the first; the others' folders differ in their ids alone, and a JVM takes long."""
        for node_id in self.ids:
            self._folder(node_id).mkdir()
            self._properties(node_id).write_text(self._config(node_id))
        first = self._folder(self.ids[0])
        config = str(self._properties(self.ids[0]))
        made = tool("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", config, timeout_s=START_S_MAX)
        if made.returncode != 0:
            raise RuntimeError(f"formatting failed: {made.stdout}{made.stderr}")
        for node_id in self.ids[1:]:
            shutil.copytree(first / "data", self._folder(node_id) / "data")
            path = self._folder(node_id) / "data" / "meta.properties"
            directory_id = urlsafe_b64encode(os.urandom(16)).decode().rstrip("=").replace("-", "a")
            text = re.sub(r"^node\.id=.*$", f"node.id={node_id}", path.read_text(), flags=re.MULTILINE)
            path.write_text(re.sub(r"^directory\.id=.*$", f"directory.id={directory_id}", text, flags=re.MULTILINE))

    def start(self) -> None:
        """All nodes at once; done when each knows the others."""
        for node_id in self.ids:
            self._launch(node_id)
        for node_id in self.ids:
            self._await_members(node_id)

    def kill(self, node_id: int) -> None:
        process = self._processes.pop(node_id)
        process.kill()
        process.wait()

    def stop(self, node_id: int) -> None:
        """A clean shutdown; a process that does not end in time is killed."""
        process = self._processes.pop(node_id)
        process.terminate()
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def restart(self, node_id: int) -> None:
        """Start a node again on the same port; done when all that run know it. One that runs is stopped."""
        if node_id in self._processes:
            self.stop(node_id)
        self._launch(node_id)
        for each in self._processes:
            self._await_members(each)

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.format()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _folder(self, node_id: int) -> Path:
        return self.directory / f"node-{node_id}"

    def _config(self, node_id: int) -> str:
        voters = ",".join(f"{each}@127.0.0.1:{port}" for each, port in self._controller_ports.items())
        address, controller = f"127.0.0.1:{self.ports[node_id]}", f"127.0.0.1:{self._controller_ports[node_id]}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": node_id,
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{address},CONTROLLER://{controller}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": self._folder(node_id) / "data",
            "group.initial.rebalance.delay.ms": 0,
            **self.properties,
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())

    def _properties(self, node_id: int) -> Path:
        return self._folder(node_id) / "server.properties"

    def _launch(self, node_id: int) -> None:
        command = java_command("kafka.Kafka", str(self._properties(node_id)), jvm=self._jvm)
        with self._output(node_id).open("ab") as output:
            self._processes[node_id] = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )

    def _output(self, node_id: int) -> Path:
        return self._folder(node_id) / "output.txt"

    def _await_members(self, node_id: int) -> None:
        """Until this one knows as many brokers as run."""
        deadline_s = time.monotonic() + START_S_MAX
        while _brokers_known_to(self.ports[node_id]) < len(self._processes):
            if self._processes[node_id].poll() is not None or time.monotonic() > deadline_s:
                output = self._output(node_id).read_text(errors="replace")
                raise RuntimeError(f"node {node_id} of Apache Kafka did not start: {output[-2000:]}")
            time.sleep(0.05)


def _brokers_known_to(port: int) -> int:
    answer = ask_metadata(port)
    return struct.unpack_from(">i", answer, 4)[0] if len(answer) >= 8 else 0
