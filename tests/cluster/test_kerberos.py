"""Three brokers that log in to each other with tickets, while these end, sessions end, and the KDC is away."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.apache_kafka import free_ports
from tests.cluster.asking import until
from tests.cluster.clients import consumer, producer, read
from tests.kerberos import Realm, in_realm

pytestmark = pytest.mark.long

SESSION_MS = 3_000  # of a login: it is renewed while the test runs
TICKET_LIFE = "10s"  # half of it is left when new ones are fetched
SERVICE = "kafka/localhost"
SCRAM = "SCRAM-SHA-512"


def three_free_ports() -> int:
    """The first of three that follow each other."""
    while True:
        first = free_ports(1)[0]
        with contextlib.ExitStack() as taken, contextlib.suppress(OSError, OverflowError):
            for port in range(first, first + 3):
                taken.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


class Cluster:
    """One `moldau start` with three processes. Brokers are users by their tickets, and librdkafka by a password."""

    def __init__(self, folder: Path, keytab: Path) -> None:
        self.folder = folder
        self.port = three_free_ports()
        options = f'useKeyTab=true storeKey=true keyTab="{keytab}" principal="{SERVICE}"'
        keys = {
            "listeners": f"SASL_PLAINTEXT://localhost:{self.port}",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": f"GSSAPI,{SCRAM}",
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.principal.to.local.rules": "RULE:[2:$1]s/^kafka$/broker/",
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": (
                f"com.sun.security.auth.module.Krb5LoginModule required {options};"
            ),
            "listener.name.sasl_plaintext.gssapi.connections.max.reauth.ms": SESSION_MS,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:broker;User:alice",
            "offsets.topic.num.partitions": 3,
        }
        path = folder / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
        command = [sys.executable, "-m", "moldau", "start", str(path), "--no-kafka-environment", "--brokers", "3"]
        command += ["--data-dir", str(folder / "data"), "--add-scram", f"{SCRAM}=[name=alice,password=alice-secret]"]
        with (folder / "output.txt").open("wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    @property
    def output(self) -> str:
        return (self.folder / "output.txt").read_text()

    @property
    def servers(self) -> str:
        return ",".join(f"localhost:{self.port + number}" for number in range(3))

    def processes(self) -> dict[int, int]:
        """Once all of them answer."""
        until(lambda: "brokers answer clients" in self.output or self.process.poll() is not None)
        found = re.findall(r"broker (\d+) .*\(process (\d+)\)", self.output)
        assert len(found) == 3, self.output
        return {int(broker_id): int(process_id) for broker_id, process_id in found}

    def client(self, **others: Any) -> dict[str, Any]:
        login = {"sasl.mechanism": SCRAM, "sasl.username": "alice", "sasl.password": "alice-secret"}
        return {"security.protocol": "SASL_PLAINTEXT", **login, **others}

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers, **self.client()})

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        finally:
            self.process.kill()


@pytest.fixture(autouse=True)
def belonging(realm: Realm) -> Iterator[None]:
    with in_realm(realm):
        yield


@pytest.fixture
def keytab(realm: Realm) -> Path:
    return realm.add(SERVICE, "-maxlife", TICKET_LIFE)


@pytest.fixture
def cluster(keytab: Path, tmp_path: Path) -> Iterator[Cluster]:
    running = Cluster(tmp_path, keytab)
    try:
        yield running
    finally:
        running.stop()


def in_sync(admin: AdminClient, topic: str) -> list[int]:
    partitions = admin.list_topics(topic, timeout=30).topics[topic].partitions
    return [len(each.isrs) for each in partitions.values()]


def test_records_are_replicated_while_tickets_and_sessions_end(cluster: Cluster, realm: Realm) -> None:
    processes, admin = cluster.processes(), cluster.admin()
    wanted = NewTopic("kept", 3, 3, config={"min.insync.replicas": "2"})
    for created in admin.create_topics([wanted]).values():
        created.result(60)
    until(lambda: in_sync(admin, "kept") == [3, 3, 3])
    writer = producer(cluster.servers, **cluster.client())
    acknowledged: list[bytes] = []
    failed: list[Any] = []

    def delivered(wrong: Any, message: Any) -> None:
        (acknowledged if wrong is None else failed).append(message.value())

    def write(for_s: float) -> None:
        end_s = time.monotonic() + for_s
        while time.monotonic() < end_s:
            writer.produce("kept", f"{len(acknowledged)}", on_delivery=delivered)
            writer.poll(0.01)
        assert writer.flush(60) == 0

    write(7.0)
    realm.stop()  # a login or two is renewed with the tickets that there are
    write(1.0)
    realm.start()
    write(6.0)
    until(lambda: in_sync(admin, "kept") == [3, 3, 3])
    os.kill(processes[2], signal.SIGKILL)
    write(4.0)
    assert failed == []
    until(lambda: in_sync(admin, "kept") == [2, 2, 2])
    reader = consumer(cluster.servers, "readers", **cluster.client())
    reader.subscribe(["kept"])
    found = [each.value() for each in read(reader, len(acknowledged))]
    reader.close()
    assert sorted(found) == sorted(acknowledged)
    told = [line for line in cluster.output.splitlines() if "SASL" in line and "WARNING" in line]
    assert told == [], "no login failed"


def test_brokers_wait_for_a_kdc_that_comes_later(realm: Realm, keytab: Path, tmp_path: Path) -> None:
    realm.stop()
    cluster = Cluster(tmp_path, keytab)
    try:
        until(lambda: "Cannot contact any KDC" in cluster.output)
        realm.start()
        assert len(cluster.processes()) == 3
        assert len(cluster.admin().list_topics(timeout=30).brokers) == 3
    finally:
        cluster.stop()
