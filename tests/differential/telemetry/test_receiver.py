"""Real clients against Apache Kafka with a plugin that takes their metrics, and against us: they push the same.

`scripts/telemetry-suite` runs it.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

import moldau
from moldau.telemetry.naming import metric_name
from tests import apache_kafka
from tests.apache_kafka import ApacheKafka
from tests.cli.conftest import run_tool
from tests.clients.toolchains import compile_java
from tests.differential.peer import Peer
from tests.scraping import scrape

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not apache_kafka.available(), reason="needs java, and Maven the first time"),
]

GET, PUSH = "GetTelemetrySubscriptions", "PushTelemetry"
CLIENTS = "rd-shop", "java-shop"
SETTLE_S = 30.0


class Judge:
    def __init__(self, bootstrap: str, received: Path) -> None:
        self.bootstrap, self.received = bootstrap, received

    def families(self, client_id: str) -> set[str]:
        """As Prometheus would have the names of what this client pushed."""
        found = set()
        for line in self.received.read_text().splitlines() if self.received.exists() else ():
            whose, _, payload = line.partition(" ")
            if whose != client_id:
                continue
            for resource in MetricsData.FromString(base64.b64decode(payload)).resource_metrics:
                for scope in resource.scope_metrics:
                    found |= {
                        metric_name(each.name, each.unit, is_counter=each.sum.is_monotonic) for each in scope.metrics
                    }
        return found


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    folder = tmp_path_factory.mktemp("receiver")
    classes, received = folder / "classes", folder / "received"
    classes.mkdir()
    compile_java(Path(__file__).with_name("Receiver.java"), libs=apache_kafka.libs(), classes=classes)
    properties = {"metric.reporters": "Receiver", "receiver.file": str(received)}
    with ApacheKafka(properties=properties, plugins=classes) as apache:
        yield Judge(apache.bootstrap, received)


@pytest.fixture(scope="module")
def broker() -> Iterator[moldau.EmbeddedBroker]:
    with moldau.run(metrics=True) as running:
        yield running


def peer_of(bootstrap: str) -> Peer:
    host, _, port = bootstrap.rpartition(":")
    return Peer((host, int(port)))


def telemetry_of(bootstrap: str) -> list[tuple[int, int, int]]:
    with closing(peer_of(bootstrap)) as peer:
        told = peer.ask("ApiVersions", 3, client_software_name="x", client_software_version="1")
    assert isinstance(told, dict), told
    return [tuple(each.values())[:3] for each in told["api_keys"] if each["api_key"] in (71, 72)]


def test_the_same_is_announced(judge: Judge, broker: moldau.EmbeddedBroker) -> None:
    assert telemetry_of(broker.bootstrap_servers) == telemetry_of(judge.bootstrap) == [(71, 0, 0), (72, 0, 0)]


def refused(bootstrap: str, data: bytes) -> object:
    with closing(peer_of(bootstrap)) as peer:
        told = peer.ask(GET, 0, client_instance_id=bytes(16))
        assert isinstance(told, dict), told
        mine = {key: told[key] for key in ("client_instance_id", "subscription_id")}
        return peer.ask(PUSH, 0, **mine, terminating=False, compression_type=0, metrics=data)


@pytest.mark.parametrize(
    "data", [b"\xff", b"\x0a\x05ab", b"\x02\x00", b"no metrics", b"\x0a\x06\x12\x04\x12\x02\x0a\xff"]
)
def test_the_same_bytes_are_no_metrics(judge: Judge, broker: moldau.EmbeddedBroker, data: bytes) -> None:
    assert refused(broker.bootstrap_servers, data) == refused(judge.bootstrap, data)


def push_from_clients(bootstrap: str) -> None:
    wanted = ["--alter", "--name", "all", "--metrics", "*", "--interval", "200"]
    assert run_tool(bootstrap, "client-metrics", *wanted).returncode == 0
    assert run_tool(bootstrap, "topics", "create", "telemetry").returncode == 0
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": CLIENTS[0], "enable.metrics.push": True})
    end_s = time.monotonic() + 2
    while time.monotonic() < end_s:
        producer.produce("telemetry", b"x")
        producer.poll(0.05)
    producer.flush()
    done = apache_kafka.tool(
        "org.apache.kafka.tools.ProducerPerformance", "--topic", "telemetry", "--num-records", "60", "--throughput",
        "30", "--record-size", "10", "--producer-props", f"bootstrap.servers={bootstrap}", f"client.id={CLIENTS[1]}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_real_clients_push_the_same(judge: Judge, broker: moldau.EmbeddedBroker) -> None:
    push_from_clients(judge.bootstrap)
    push_from_clients(broker.bootstrap_servers)
    page = scrape(broker.metrics_url)
    for client_id in CLIENTS:
        ours = {
            name
            for name, samples in page.samples.items()
            if name.startswith("org_apache_kafka_") and any(labels["client_id"] == client_id for labels, _ in samples)
        }
        assert len(ours) > 5
        assert ours == judge.families(client_id)
