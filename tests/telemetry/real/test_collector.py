"""A broker, a client and the lag monitor send their metrics to OpenTelemetry's own collector.

It is built by Go on the first run, in some minutes; `scripts/telemetry-suite` runs it.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

import moldau
from tests.apache_kafka import free_ports
from tests.cli.conftest import run_tool
from tests.cli.monitors import file_of, running
from tests.clients.toolchains import built, run

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1_500),
    pytest.mark.skipif(shutil.which("go") is None, reason="the collector is built by Go"),
]

BUILDER = "go.opentelemetry.io/collector/cmd/builder@v0.120.0"
SETTINGS = """\
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{debug: {{verbosity: detailed, sampling_initial: 1000000}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{metrics: {{receivers: [otlp], exporters: [debug]}}}}
"""
SETTLE_S = 60.0


def collector_program() -> Path:
    source = Path(__file__).with_name("builder.yaml")

    def build(target: Path) -> None:
        run("go", "run", BUILDER, f"--config={source}", directory=target)

    return built("otelcol", [source], build) / "out" / "otelcol"


@contextmanager
def running_collector(folder: Path) -> Iterator[tuple[str, Path]]:
    """Its URL, and the file that it tells in what came."""
    (port,) = free_ports(1)
    settings, told = folder / "collector.yaml", folder / "collector.log"
    settings.write_text(SETTINGS.format(port=port))
    with (
        told.open("w") as log,
        subprocess.Popen([collector_program(), "--config", str(settings)], stdout=log, stderr=log) as process,
    ):
        try:
            until(told, "Everything is ready")
            yield f"http://127.0.0.1:{port}", told
        finally:
            process.terminate()


def until(told: Path, *texts: str) -> str:
    deadline_s = time.monotonic() + SETTLE_S
    while not all(text in (found := told.read_text()) for text in texts):
        assert time.monotonic() < deadline_s, f"{texts} is not in {found[-2_000:]}"
        time.sleep(0.1)
    return found


def test_what_brokers_clients_and_monitors_tell_arrives(tmp_path: Path) -> None:
    with running_collector(tmp_path) as (url, told):
        overrides = {"otel.exporter.otlp.endpoint": url, "otel.metric.export.interval": "500"}
        with moldau.run(overrides=overrides) as broker:
            wanted = ["--alter", "--name", "all", "--metrics", "*", "--interval", "200"]
            assert run_tool(broker.bootstrap_servers, "client-metrics", *wanted).returncode == 0
            producer = Producer(
                {"bootstrap.servers": broker.bootstrap_servers, "client.id": "shop", "enable.metrics.push": True}
            )
            producer.poll(1)
            more = f"otlp-endpoint = '{url}'\notlp-interval = 0.5"
            with running(broker.bootstrap_servers, "--config", file_of(tmp_path, broker.bootstrap_servers, "g", more)):
                found = until(
                    told,
                    "Name: kafka_network_requestmetrics_requests_total",
                    "Name: org.apache.kafka.producer.connection.creation.total",
                    "Name: moldau_monitor_up",
                    "AggregationTemporality: Delta",
                    "-> client_id: Str(shop)",
                    "-> service.name: Str(moldau)",
                    "-> service.name: Str(moldau-monitor)",
                )
            del producer
    assert "\terror\t" not in found, "the level of a line of its log"
