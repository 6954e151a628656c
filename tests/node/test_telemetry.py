"""Clients' own metrics on the way from real clients to `/metrics` and to a collector."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

import moldau
from moldau.core.errors import ErrorCode
from moldau.core.ids import ZERO_UUID, format_uuid
from moldau.wire.compression import Codec, compress
from moldau.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from tests import apache_kafka
from tests.broker.handlers.wire import Wire
from tests.cli.conftest import run_tool
from tests.scraping import Scrape, scrape
from tests.telemetry.collector import Collector, running_collector
from tests.telemetry.metrics import pushed

pytestmark = pytest.mark.xdist_group("telemetry")

APIS = {71, 72}
SETTLE_S = 30.0
SENT = "org.apache.kafka.sent.total"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with running_collector() as found:
        yield found


@pytest.fixture(scope="module")
def broker(collector: Collector) -> Iterator[moldau.EmbeddedBroker]:
    overrides = {"otel.exporter.otlp.endpoint": collector.url, "otel.metric.export.interval": "200"}
    with moldau.run(metrics=True, overrides=overrides) as running:
        wanted = ["--alter", "--name", "all", "--metrics", "*", "--interval", "200"]
        assert run_tool(running.bootstrap_servers, "client-metrics", *wanted).returncode == 0
        yield running


def api_keys(bootstrap: str) -> set[int]:
    with closing(Wire(bootstrap)) as wire:
        answer = wire.ask(ApiVersionsRequest("tests", "1.0"), 4, ApiVersionsResponse)
    return {each.api_key for each in answer.api_keys}


def until_scraped(broker: moldau.EmbeddedBroker, name: str, **labels: str) -> Scrape:
    deadline_s = time.monotonic() + SETTLE_S
    while not (found := scrape(broker.metrics_url)).all(name, **labels):
        assert time.monotonic() < deadline_s, sorted(found.samples)
        time.sleep(0.05)
    return found


class Pushing:
    """One client instance, as its own protocol has it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        request = GetTelemetrySubscriptionsRequest(ZERO_UUID)
        self.told = wire.ask(request, 0, GetTelemetrySubscriptionsResponse)

    def push(self, data: bytes, codec: Codec = Codec.ZSTD, *, terminating: bool = False) -> int:
        request = PushTelemetryRequest(
            self.told.client_instance_id, self.told.subscription_id, terminating, codec, bytes(compress(codec, data))
        )
        return self._wire.ask(request, 0, PushTelemetryResponse).error_code


def test_only_a_broker_with_metrics_asks_for_those_of_clients(broker: moldau.EmbeddedBroker) -> None:
    assert api_keys(broker.bootstrap_servers) >= APIS
    with moldau.run() as other:
        assert not api_keys(other.bootstrap_servers) & APIS
        with closing(Wire(other.bootstrap_servers)) as wire, pytest.raises(ConnectionError):
            wire.ask(GetTelemetrySubscriptionsRequest(ZERO_UUID), 0, GetTelemetrySubscriptionsResponse)


def test_pushes_are_added_up_shown_and_sent_on(broker: moldau.EmbeddedBroker, collector: Collector) -> None:
    with closing(Wire(broker.bootstrap_servers, "shop")) as wire:
        wire.ask(ApiVersionsRequest("my-client", "1.2"), 4, ApiVersionsResponse)
        client = Pushing(wire)
        assert client.told.requested_metrics == ["*"]
        assert client.push(pushed(("sum", SENT, 5), time_ns=1)) == ErrorCode.NONE
        last = pushed(("sum", SENT, 3), time_ns=2)
        assert client.push(last, Codec.LZ4, terminating=True) == ErrorCode.NONE
    instance = format_uuid(client.told.client_instance_id)
    found = until_scraped(broker, "org_apache_kafka_sent_total", client_instance_id=instance)
    labels = {"client_id": "shop", "client_software_name": "my-client", "client_software_version": "1.2"}
    assert found.value("org_apache_kafka_sent_total", client_instance_id=instance, **labels) == 8
    assert found.value("moldau_client_telemetry_info", client_instance_id=instance, principal="User:ANONYMOUS") == 1
    assert found.sum("kafka_server_client_metrics_plugin_export_total") >= 2
    metric = collector.metric(SENT, client_instance_id=instance, client_software_name="my-client")
    assert metric.sum.aggregation_temporality == 1
    ours = collector.metric("kafka_server_client_metrics_instance_count", **{"service.name": "moldau"})
    assert ours.gauge.data_points
    assert not [metrics for _, metrics in collector.resources() if "org_apache_kafka_sent_total" in metrics]


def test_bytes_that_are_no_metrics(broker: moldau.EmbeddedBroker) -> None:
    with closing(Wire(broker.bootstrap_servers)) as wire:
        assert Pushing(wire).push(b"\xff" * 100) == ErrorCode.INVALID_RECORD
    assert scrape(broker.metrics_url).value("kafka_server_client_metrics_plugin_error_total") >= 1


def test_librdkafkas_metrics(broker: moldau.EmbeddedBroker, collector: Collector) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "enable.metrics.push": True, "log_level": 3}
    broker.create_topic("librdkafka", partitions=2)
    producer = Producer({**settings, "client.id": "rd-shop"})
    consumer = Consumer({**settings, "client.id": "rd-reader", "group.id": "rd", "auto.offset.reset": "earliest"})
    consumer.subscribe(["librdkafka"])
    created = "org_apache_kafka_producer_connection_creation_total"
    assigned = "org_apache_kafka_consumer_coordinator_assigned_partitions"
    deadline_s = time.monotonic() + SETTLE_S
    while True:
        producer.produce("librdkafka", b"x")
        producer.poll(0.05)
        consumer.poll(0.05)
        found = scrape(broker.metrics_url)
        if found.all(created, client_id="rd-shop") and 2 in found.all(assigned, client_id="rd-reader", group_id="rd"):
            break
        assert time.monotonic() < deadline_s, sorted(found.samples)
    producer.flush()
    consumer.close()
    assert collector.metric("org.apache.kafka.producer.connection.creation.total", client_id="rd-shop")


def test_a_client_that_logs_in_is_known_by_its_software_and_its_user(tmp_path: Path) -> None:
    """It tells its software before its login."""
    with moldau.run(metrics=True, secure=True) as broker:
        settings = {**broker.clients.confluent, "client.id": "secured", "enable.metrics.push": True, "log_level": 3}
        file = tmp_path / "admin.conf"
        file.write_text("".join(f"{key}={value}\n" for key, value in broker.clients.confluent.items()))
        wanted = ["--metrics", "*", "--interval", "200", "--match", "client_software_name=confluent-kafka.*"]
        done = run_tool(
            broker.bootstrap_servers, "client-metrics", "--alter", "--name", "x", *wanted, "--command-config", str(file)
        )
        assert done.returncode == 0, done.stderr
        producer = Producer(settings)  # before, it would be told to ask again in five minutes
        deadline_s = time.monotonic() + SETTLE_S
        while not (found := scrape(broker.metrics_url)).all("moldau_client_telemetry_info", client_id="secured"):
            assert time.monotonic() < deadline_s, sorted(found.samples)
            producer.poll(0.1)
    labels = {"client_software_name": "confluent-kafka-python", "listener": "SASL_SSL"}
    assert found.value("moldau_client_telemetry_info", client_id="secured", **labels) == 1
    (user,) = {each["principal"] for each, _ in found.samples["moldau_client_telemetry_info"]}
    assert user == "User:admin"


@pytest.mark.skipif(not apache_kafka.available(), reason="needs java, and Maven the first time")
def test_java_clients_metrics_by_default(broker: moldau.EmbeddedBroker) -> None:
    broker.create_topic("java", partitions=1)
    settings = [f"bootstrap.servers={broker.bootstrap_servers}", "client.id=java-shop"]
    done = apache_kafka.tool(
        "org.apache.kafka.tools.ProducerPerformance", "--topic", "java", "--num-records", "60", "--throughput", "30",
        "--record-size", "10", "--producer-props", *settings,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = until_scraped(broker, "org_apache_kafka_producer_record_send_total", client_id="java-shop")
    labels = {"client_id": "java-shop", "client_software_name": "apache-kafka-java"}
    # It pushes for the last time before its last records are acknowledged.
    assert 40 <= found.value("org_apache_kafka_producer_record_send_total", **labels) <= 60
    assert found.all("org_apache_kafka_producer_topic_record_send_total", topic="java", client_id="java-shop")


def test_what_is_missing_is_one_line(tmp_path: Path) -> None:
    """Another package of that name hides the real one. A variable that every program sees is no reason not to start."""
    (tmp_path / "opentelemetry").mkdir()
    (tmp_path / "opentelemetry" / "__init__.py").touch()
    command = [sys.executable, "-m", "moldau", "start", "--port", "0", "--data-dir", str(tmp_path / "data")]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    override = ["--override", "otel.exporter.otlp.endpoint=http://127.0.0.1:1"]
    done = subprocess.run(
        [*command, *override], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    line = "otel.exporter.otlp.endpoint: it needs: pip install 'moldau[otel]'"
    assert done.returncode != 0
    assert [each for each in done.stderr.splitlines() if line in each] == [done.stderr.strip()]


@pytest.mark.parametrize("endpoint", ["collector:4318", "ftp://collector", "http://", "http://a b"])
def test_an_endpoint_that_is_no_url_is_refused(endpoint: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "moldau", "start", "--data-dir", str(tmp_path), "--override"]
    done = subprocess.run(
        [*command, f"otel.exporter.otlp.endpoint={endpoint}"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert "the URL of an OpenTelemetry collector" in done.stderr.strip().splitlines()[-1]
