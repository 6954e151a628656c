"""The two sides of every comparison here: Moldau and Apache Kafka, both alive while they are measured in turn."""

from __future__ import annotations

import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests import apache_kafka

START_S_MAX = 180.0
STOP_S_MAX = 120.0
OURS = "{python} -m moldau start --port {port} --data-dir {dir}/data --log-level WARNING"
# The flags of kafka-server-start.sh: a heap of 1 GiB, and G1 tuned for short pauses.
SERVER_JVM = [
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
]
KAFKA_CONFIG = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={dir}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""
API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 1, -1)


@dataclass(slots=True)
class Broker:
    """One side: how it is started, and what it costs."""

    name: str
    command: list[str]
    port: int
    directory: Path
    process: subprocess.Popen[bytes] | None = None
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self, is_ready: Callable[[Broker], bool]) -> float:
        """Seconds until it is ready."""
        with (self.directory / "output.txt").open("ab") as output:
            begun = time.monotonic()
            self.process = subprocess.Popen(self.command, stdout=output, stderr=output, start_new_session=True)
        while not is_ready(self):
            if self.process.poll() is not None or time.monotonic() - begun > START_S_MAX:
                sys.exit(f"{self.name} did not start: see {output.name}")
            time.sleep(0.01)
        return time.monotonic() - begun

    def stop(self) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            sys.exit(f"{self.name} did not stop within {STOP_S_MAX} s")

    def memory_mb(self) -> float:
        assert self.process is not None
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) / 1024


def java(class_name: str, *words: str, jvm: list[str]) -> list[str]:
    return ["java", *jvm, "-cp", f"{apache_kafka.libs()}/*", class_name, *words]


def kafka(port: int, controller: int, directory: Path) -> Broker:
    config = directory / "server.properties"
    config.write_text(KAFKA_CONFIG.format(port=port, controller=controller, dir=directory))
    made = apache_kafka.tool("kafka.tools.StorageTool", "format", "-t", "bW9sZGF1LWJlbmNoLTAwMQ", "-c", str(config))
    assert made.returncode == 0, made.stderr
    return Broker("kafka", java("kafka.Kafka", str(config), jvm=SERVER_JVM), port, directory)


def ours(command: str, port: int, directory: Path) -> Broker:
    words = shlex.split(command.format(python=sys.executable, port=port, dir=directory))
    return Broker("ours", words, port, directory)


def answers(broker: Broker) -> bool:
    """True once ApiVersions is answered: a listening socket alone is not a started broker."""
    try:
        with closing(socket.create_connection(("127.0.0.1", broker.port), 1)) as peer:
            peer.settimeout(2)
            peer.sendall(API_VERSIONS_V0)
            return len(peer.recv(16)) > 0
    except OSError:
        return False


@contextmanager
def two_brokers(command: str, *, twice_kafka: bool = False) -> Iterator[list[Broker]]:
    """Ours and theirs, not yet started; stopped and forgotten afterwards."""
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        folders = [Path(scratch) / name for name in ("ours", "kafka")]
        for folder in folders:
            folder.mkdir()
        ports = apache_kafka.free_ports(4)
        second = kafka(ports[0], ports[1], folders[1])
        first = kafka(ports[2], ports[3], folders[0]) if twice_kafka else ours(command, ports[2], folders[0])
        first.name = "kafka too" if twice_kafka else "ours"
        brokers = [first, second]
        try:
            yield brokers
        finally:
            for broker in brokers:
                broker.stop()
