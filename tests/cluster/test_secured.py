"""Three brokers that trust nobody: SASL_SSL and SCRAM between them and to clients, TLS and a login to ZooKeeper."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from tests.apache_kafka import free_ports
from tests.security.tls.conftest import world
from tests.security.tls.world import World
from tests.store import ensemble as zookeeper
from tests.store.secured_zookeeper import SecuredZookeeper, running_secured

__all__ = ["world"]

pytestmark = [
    pytest.mark.long,
    pytest.mark.xdist_group("store"),
    pytest.mark.skipif(not zookeeper.is_available(), reason="needs Java, and Maven the first time"),
]

START_S_MAX = 120.0
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
DIGEST = "org.apache.zookeeper.server.auth.DigestLoginModule"
SESSION_MS = 5_000  # of a login: it is renewed while the test runs


class Cluster:
    """One `moldau start` with three processes, all of whose listeners want a login over TLS."""

    def __init__(self, folder: Path, world: World, service: SecuredZookeeper) -> None:
        self.folder = folder
        self.port = free_ports(1)[0]
        self.trust = folder / "authority.pem"
        self._start(self._configuration(folder, world, service))

    @property
    def output(self) -> str:
        return (self.folder / "output.txt").read_text()

    def _configuration(self, folder: Path, world: World, service: SecuredZookeeper) -> Path:
        store = folder / "server.pem"
        store.write_bytes(world.server.key_pem() + world.server.certificate_pem())
        self.trust.write_bytes(world.authority.certificate_pem())
        login = f'{SCRAM} required username="broker" password="broker-secret";'
        keys = {
            "listeners": f"SASL_SSL://127.0.0.1:{self.port}",
            "security.inter.broker.protocol": "SASL_SSL",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": login,
            "connections.max.reauth.ms": SESSION_MS,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": store,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.trust,
            "zookeeper.connect": service.by_tls("/secured"),
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.truststore.location": self.trust,
            "zookeeper.sasl.jaas.config": f'{DIGEST} required username="moldau" password="zk-secret";',
            "zookeeper.set.acl": "true",
            "offsets.topic.num.partitions": 3,
        }
        path = folder / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
        return path

    def _start(self, properties: Path) -> None:
        users = [f"SCRAM-SHA-512=[name={name},password={name}-secret]" for name in ("broker", "alice")]
        command = [sys.executable, "-m", "moldau", "start", str(properties), "--no-kafka-environment", "--brokers", "3"]
        command += ["--data-dir", str(self.folder / "data")]
        for user in users:
            command += ["--add-scram", user]
        with (self.folder / "output.txt").open("wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        self.until(lambda: "brokers answer clients" in self.output or self.process.poll() is not None)
        found = re.findall(r"broker (\d+) .*\(process (\d+)\)", self.output)
        assert len(found) == 3, self.output
        self.processes = {int(broker_id): int(process_id) for broker_id, process_id in found}

    def until(self, condition: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + START_S_MAX
        while not condition():
            assert time.monotonic() < deadline_s, self.output
            time.sleep(0.1)

    def client(self, **others: Any) -> dict[str, Any]:
        return {
            "bootstrap.servers": ",".join(f"127.0.0.1:{self.port + number}" for number in range(3)),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "alice",
            "sasl.password": "alice-secret",
            "ssl.ca.location": str(self.trust),
            **others,
        }

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        finally:
            self.process.kill()


@pytest.fixture(scope="module")
def service(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredZookeeper]:
    with running_secured(world, tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(world: World, service: SecuredZookeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = Cluster(tmp_path_factory.mktemp("brokers"), world, service)
    try:
        yield running
    finally:
        running.stop()


def in_sync(admin: AdminClient) -> list[int]:
    partitions = admin.list_topics("kept", timeout=30).topics["kept"].partitions
    return [len(each.isrs) for each in partitions.values()]


def test_records_are_replicated_while_a_broker_dies_and_logins_are_renewed(cluster: Cluster) -> None:
    admin = AdminClient(cluster.client())
    wanted = NewTopic("kept", 3, 3, config={"min.insync.replicas": "2"})
    for created in admin.create_topics([wanted]).values():
        created.result(60)
    writer = Producer(cluster.client(acks="all", **{"linger.ms": 5}))
    acknowledged: list[bytes] = []
    failed: list[bytes] = []

    def delivered(wrong: Any, message: Any) -> None:
        (failed if wrong is not None else acknowledged).append(message.value())

    def write(count: int, *, for_s: float) -> None:
        for number in range(count):
            writer.produce("kept", f"{len(acknowledged)}-{number}", on_delivery=delivered)
            writer.poll(for_s / count)
        assert writer.flush(60) == 0

    write(500, for_s=1.5 * SESSION_MS / 1_000)
    cluster.until(lambda: in_sync(admin) == [3, 3, 3])
    os.kill(cluster.processes[2], signal.SIGKILL)
    write(500, for_s=1.5 * SESSION_MS / 1_000)
    assert (len(acknowledged), failed) == (1_000, [])
    cluster.until(lambda: in_sync(admin) == [2, 2, 2])
    assert sorted(read(cluster, 1_000)) == sorted(acknowledged)
    told = [line for line in cluster.output.splitlines() if "SASL" in line and "WARNING" in line]
    assert told == [], "no login failed"
    assert "secret" not in cluster.output


def read(cluster: Cluster, count: int) -> list[bytes]:
    reader = Consumer(cluster.client(**{"group.id": "readers", "auto.offset.reset": "earliest"}))
    reader.subscribe(["kept"])
    found: list[bytes] = []
    deadline_s = time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline_s:
        found += [each.value() for each in reader.consume(count, 1.0) if each.error() is None]
    reader.close()
    return found


def test_the_metadata_is_for_brokers_alone(cluster: Cluster, service: SecuredZookeeper) -> None:
    client = KazooClient(service.plainly("/secured"))
    client.start(30)
    try:
        assert client.get_children("/brokers/ids")
        with pytest.raises(NoAuthError):
            client.get_children("/moldau/log/entries")
        with pytest.raises(NoAuthError):
            client.set("/controller_epoch", b"99")
    finally:
        client.stop()
        client.close()
