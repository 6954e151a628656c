"""Brokers of one cluster, each a process on a host of its own: Moldau's, or Apache Kafka's (KRaft).

Both kinds answer the same questions: where the processes, ports and data are, who leads and who is in sync. Moldau's
metadata is in SQLite, one file for all, or in ZooKeeper, whose servers are on hosts of their own.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests import apache_kafka
from tests.faults.cluster import asking
from tests.faults.cluster.asking import ClusterState, Refused
from tests.faults.cluster.network import Network
from tests.faults.cluster.securing import PROBE_PORT, Security, grant, secure
from tests.faults.failing_disk import FailingDisk
from tests.store.clock_jump import JumpingClock
from tests.store.ensemble import jars

PORT, CONTROLLER_PORT, ZOOKEEPER_PORT = 9092, 9093, 2181
START_S_MAX = 180.0
STOP_S_MAX = 60.0
CLUSTER_ID = "bW9sZGF1LWZhdWx0cy0wMQ"
PROJECT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Shape:
    """What a run's cluster is made of."""

    kind: str = "moldau"
    brokers: int = 3
    store: str = "sqlite"
    session_timeout_s: float = 9.0
    planted: str = ""
    log_directories: int = 1
    is_secured: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of every broker, over what the harness sets."""

    @property
    def replication_factor(self) -> int:
        return min(3, self.brokers)

    @property
    def min_insync_replicas(self) -> int:
        return 2 if self.brokers >= 3 else 1

    @property
    def has_network_sessions(self) -> bool:
        """Brokers that share a file know of each other by it: nothing that happens to a network ends their sessions."""
        return self.kind == "apache" or self.store == "zookeeper"

    @property
    def store_servers(self) -> list[str]:
        return [f"z{number}" for number in (1, 2, 3)] if self.store == "zookeeper" else []

    @property
    def hosts(self) -> list[str]:
        return [f"b{number}" for number in range(1, self.brokers + 1)]


@dataclass
class Process:
    """A program on a host that is started, signalled and started again."""

    host: str
    directory: Path
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    is_paused: bool = False

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def output_path(self) -> Path:
        return self.directory / "output.txt"

    def launch(self, network: Network) -> None:
        self.is_paused = False
        with self.output_path.open("ab") as output:
            self.process = subprocess.Popen(
                network.command(self.host, self.command),
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment}, cwd=PROJECT, start_new_session=True,
            )  # fmt: skip

    def send(self, number: signal.Signals) -> None:
        if self.process is not None and self.is_running:
            self.process.send_signal(number)
            self.is_paused = {signal.SIGSTOP: True, signal.SIGCONT: False}.get(number, self.is_paused)

    def end(self, number: signal.Signals) -> None:
        """Send a signal and wait for the end; one that does not come is forced."""
        if self.process is None:
            return
        self.send(signal.SIGCONT)
        self.send(number)
        try:
            self.process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass
class Broker(Process):
    id: int = 0
    address: str = ""
    disk: FailingDisk | None = None
    clock: JumpingClock | None = None

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def log_directories(self, count: int) -> list[Path]:
        return [self.data, *(self.directory / f"data-{number}" for number in range(2, count + 1))]

    def log_directory_of(self, partition: str) -> Path:
        """Where a partition's folder is. Raises OSError."""
        for path in self.directory.glob(f"data*/{partition}"):
            return path.parent
        raise FileNotFoundError(f"broker {self.id} has no {partition}")


class Cluster:
    """Started by `start`, ended by `close`; in between, faults do what they like with its processes."""

    def __init__(self, shape: Shape, network: Network, directory: Path) -> None:
        self.shape = shape
        self.network = network
        self.directory = directory
        (directory / "metadata").mkdir(parents=True)
        self.security = secure(directory / "security") if shape.is_secured else None
        self.brokers = {number: self._broker(number) for number in range(1, shape.brokers + 1)}
        self.store = {host: _zookeeper(host, directory, network, shape, self.security) for host in shape.store_servers}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{self.network.address(broker.host)}:{PORT}" for broker in self.brokers.values())

    @property
    def addresses(self) -> list[str]:
        """Where brokers are asked without a login."""
        return [broker.address for broker in self.brokers.values()]

    def client_settings(self) -> dict[str, str]:
        """Of librdkafka."""
        login = self.security.client_settings() if self.security is not None else {}
        return {"bootstrap.servers": self.bootstrap, **login}

    def _broker(self, number: int) -> Broker:
        host, directory = f"b{number}", self.directory / f"b{number}"
        directory.mkdir(parents=True)
        disk, clock = FailingDisk(directory), JumpingClock(directory)
        preloaded = {**disk.environment, **clock.environment}
        preloaded["LD_PRELOAD"] = f"{disk.environment['LD_PRELOAD']}:{clock.environment['LD_PRELOAD']}"
        port = PORT if self.security is None else PROBE_PORT
        broker = Broker(
            host, directory, [], preloaded, id=number, address=f"{self.network.address(host)}:{port}",
            disk=disk, clock=clock,
        )  # fmt: skip
        config = directory / "server.properties"
        settings = _settings(self.shape, broker, self.network, self.security)
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        broker.command = _command(self.shape, config, self.directory)
        broker.command += self.security.first_users() if self.security is not None else []
        return broker

    def start(self) -> None:
        for server in self.store.values():
            server.launch(self.network)
        self.await_store()
        if self.shape.kind == "apache":
            _format(list(self.brokers.values()))
        for broker in self.brokers.values():
            broker.launch(self.network)
        self.await_members(START_S_MAX)
        if self.security is not None:
            grant(self.brokers[1].address)

    def restart(self, broker: Broker) -> None:
        """Whatever became of it, it runs again and answers."""
        broker.send(signal.SIGCONT)
        if not broker.is_running:
            broker.launch(self.network)
        self.await_answer(broker)

    def await_answer(self, broker: Broker) -> None:
        deadline_s = time.monotonic() + START_S_MAX
        while not _listens(broker.address):
            if not broker.is_running:
                raise AssertionError(f"broker {broker.id} ended:\n{tail(broker)}")
            assert time.monotonic() < deadline_s, f"broker {broker.id} does not answer:\n{tail(broker)}"
            time.sleep(0.1)

    def await_members(self, timeout_s: float) -> None:
        """Until every broker that runs knows of every other."""
        deadline_s = time.monotonic() + timeout_s
        wanted = frozenset(self.brokers)
        while True:
            ended = [broker for broker in self.brokers.values() if not broker.is_running]
            if ended:
                raise AssertionError(f"broker {ended[0].id} ended:\n{tail(ended[0])}")
            try:
                if all(asking.cluster_state(each.address).brokers == wanted for each in self.brokers.values()):
                    return
            except (OSError, Refused):
                pass
            if time.monotonic() > deadline_s:
                raise AssertionError(f"the cluster is not whole; broker 1 says:\n{tail(self.brokers[1])}")
            time.sleep(0.3)

    def state(self, *, without: frozenset[int] = frozenset()) -> ClusterState:
        """As the first broker tells it that answers, and is not among those that can't know. Raises OSError."""
        for broker in self.brokers.values():
            if broker.id not in without and broker.is_running and not broker.is_paused:
                try:
                    return asking.cluster_state(broker.address)
                except (OSError, Refused):
                    continue
        raise ConnectionError("no broker answers")

    def controller(self) -> int:
        for broker in self.brokers.values():
            if broker.is_running and not broker.is_paused:
                try:
                    if self.shape.kind == "apache":
                        return asking.quorum_leader(broker.address)
                    return asking.cluster_state(broker.address).controller
                except (OSError, Refused):
                    continue
        raise ConnectionError("no broker answers")

    def coordinator(self, key: str, kind: int) -> int:
        for broker in self.brokers.values():
            if broker.is_running and not broker.is_paused:
                try:
                    return asking.coordinator(broker.address, key, kind)
                except (OSError, Refused):
                    continue
        raise ConnectionError("no broker answers")

    def store_leader(self) -> str:
        for host, server in self.store.items():
            if server.is_running and "Mode: leader" in self._server_says(host):
                return host
        raise ConnectionError("no server of the store leads")

    def await_store(self) -> None:
        deadline_s = time.monotonic() + START_S_MAX
        while not all("Mode: " in self._server_says(host) for host in self.store):
            assert time.monotonic() < deadline_s, "the store's servers do not come back"
            time.sleep(0.2)

    def _server_says(self, host: str) -> str:
        try:
            with socket.create_connection((self.network.address(host), ZOOKEEPER_PORT), 3) as connection:
                connection.sendall(b"srvr")
                return connection.makefile("r").read()
        except OSError:
            return ""

    def close(self) -> None:
        for process in (*self.brokers.values(), *self.store.values()):
            process.send(signal.SIGCONT)
            process.send(signal.SIGKILL)
        for process in (*self.brokers.values(), *self.store.values()):
            if process.process is not None:
                process.process.wait()


def tail(process: Process) -> str:
    return process.output_path.read_text(errors="replace")[-3_000:] if process.output_path.exists() else ""


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), 2):
            return True
    except OSError:
        return False


def _settings(shape: Shape, broker: Broker, network: Network, security: Security | None) -> dict[str, str]:
    copies, least = str(shape.replication_factor), str(shape.min_insync_replicas)
    return {
        "node.id": str(broker.id),
        "listeners": f"PLAINTEXT://{broker.address}",
        "advertised.listeners": f"PLAINTEXT://{broker.address}",
        "log.dirs": ",".join(map(str, broker.log_directories(shape.log_directories))),
        "default.replication.factor": copies,
        "min.insync.replicas": least,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": least,
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.num.partitions": "3",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        "replica.lag.time.max.ms": str(int(shape.session_timeout_s * 1_000)),
        **(security.broker_settings(network.address(broker.host), port=PORT) if security is not None else {}),
        **(
            _apache_settings(shape, broker, network)
            if shape.kind == "apache"
            else _moldau_settings(shape, network, security)
        ),
        **shape.settings,
    }


def _apache_settings(shape: Shape, broker: Broker, network: Network) -> dict[str, str]:
    voters = ",".join(
        f"{number}@{network.address(host)}:{CONTROLLER_PORT}" for number, host in enumerate(shape.hosts, start=1)
    )
    address = network.address(broker.host)
    return {
        "process.roles": "broker,controller",
        "controller.quorum.voters": voters,
        "listeners": f"PLAINTEXT://{broker.address},CONTROLLER://{address}:{CONTROLLER_PORT}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "metadata.log.dir": str(broker.directory / "metadata"),
        "broker.session.timeout.ms": str(int(shape.session_timeout_s * 1_000)),
        "broker.heartbeat.interval.ms": str(int(shape.session_timeout_s * 1_000 / 5)),
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }


def _moldau_settings(shape: Shape, network: Network, security: Security | None) -> dict[str, str]:
    if shape.store != "zookeeper":
        return {}
    servers, path = [network.address(host) for host in shape.store_servers], "/moldau"
    if security is not None:
        reached = security.store_client_settings(servers, path)
    else:
        reached = {"zookeeper.connect": ",".join(f"{server}:{ZOOKEEPER_PORT}" for server in servers) + path}
    return {**reached, "zookeeper.session.timeout.ms": str(int(shape.session_timeout_s * 1_000))}


def _command(shape: Shape, config: Path, directory: Path) -> list[str]:
    if shape.kind == "apache":
        return apache_kafka.java_command("kafka.Kafka", str(config))
    program = [sys.executable, "-m", "moldau"]
    if shape.planted:
        program = [sys.executable, "-m", "tests.faults.cluster.planted", shape.planted]
    command = [*program, "start", str(config), "--no-kafka-environment"]
    if shape.brokers > 1 and shape.store == "sqlite":
        command += ["--member-of", str(directory / "metadata"), "--members", str(shape.brokers)]
        command += ["--cluster-id", CLUSTER_ID]
    return command


def _format(brokers: list[Broker]) -> None:
    """Apache Kafka's tool formats one broker's folders; the others' differ in the ids alone, and a JVM takes long."""
    first = brokers[0]
    config = str(first.directory / "server.properties")
    made = apache_kafka.tool("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", config)
    assert made.returncode == 0, made.stdout + made.stderr
    for broker in brokers[1:]:
        for formatted in first.directory.glob("*/meta.properties"):
            path = broker.directory / formatted.parent.name / formatted.name
            shutil.copytree(formatted.parent, path.parent)
            known = dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)
            write_meta_properties(path, known, broker.id)


def write_meta_properties(path: Path, known: Mapping[str, str], node_id: int) -> None:
    directory_id = urlsafe_b64encode(os.urandom(16)).decode().rstrip("=").replace("-", "a")
    settings = {**known, "node.id": str(node_id), "directory.id": directory_id}
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


def _zookeeper(host: str, directory: Path, network: Network, shape: Shape, security: Security | None) -> Process:
    home = directory / host
    data = home / "data"
    data.mkdir(parents=True)
    number = shape.store_servers.index(host) + 1
    (data / "myid").write_text(f"{number}\n")
    secured, java = security.store_server_settings(network.address(host)) if security is not None else ({}, [])
    settings = {
        **secured,
        "tickTime": 1_000, "initLimit": 30, "syncLimit": 5, "dataDir": data, "clientPort": ZOOKEEPER_PORT,
        "admin.enableServer": "false", "4lw.commands.whitelist": "*",
        **{f"server.{n}": f"{network.address(each)}:2888:3888" for n, each in enumerate(shape.store_servers, 1)},
    }  # fmt: skip
    config = home / "zoo.cfg"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    options = [*java, "-Xmx128M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    options += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{jars()}/*"]
    return Process(
        host, home, ["java", *options, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config)]
    )  # fmt: skip
