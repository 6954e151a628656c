"""What the lag monitor tells, sent to a collector."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.cli.monitor.exporting import destination_of
from moldau.monitor.settings import InvalidSettings, Settings, read_settings
from moldau.telemetry.export.exporter import Destination
from tests.cli.conftest import command, environment
from tests.cli.monitors import file_of, running
from tests.telemetry.collector import Collector, running_collector

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with running_collector() as found:
        yield found


def test_a_monitor_sends_what_it_tells(bootstrap: str, collector: Collector, tmp_path: Path) -> None:
    more = f"otlp-endpoint = '{collector.url}'\notlp-interval = 0.2"
    with running(bootstrap, "--config", file_of(tmp_path, bootstrap, "g", more)):
        found = collector.metric("moldau_monitor_up", **{"service.name": "moldau-monitor"})
    assert found.gauge.data_points


def test_the_file_wins_over_the_environment() -> None:
    theirs = {ENDPOINT: "http://a:4318", "OTEL_METRIC_EXPORT_INTERVAL": "500"}
    assert destination_of(Settings(otlp_endpoint="http://b"), theirs) == Destination("http://b", 60.0)
    assert destination_of(Settings(), theirs) == Destination("http://a:4318", 0.5)
    assert destination_of(Settings(), {**theirs, "OTEL_SDK_DISABLED": "true"}) is None
    assert destination_of(Settings(), {**theirs, "OTEL_METRICS_EXPORTER": "none"}) is None
    assert destination_of(Settings(), {}) is None


def test_an_endpoint_that_is_no_url_is_refused() -> None:
    with pytest.raises(InvalidSettings, match="otlp-endpoint: expected the URL"):
        read_settings({"otlp-endpoint": "collector:4318"})


def test_what_is_missing_is_one_line(bootstrap: str, tmp_path: Path) -> None:
    """Another package of that name hides the real one."""
    (tmp_path / "opentelemetry").mkdir()
    (tmp_path / "opentelemetry" / "__init__.py").touch()
    file = file_of(tmp_path, bootstrap, "g", "otlp-endpoint = 'http://127.0.0.1:1'")
    done = subprocess.run(
        command("monitor", "--listen", "127.0.0.1:0", "--config", file),
        env={**environment(bootstrap), "PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "moldau monitor: otlp-endpoint: it needs: pip install 'moldau[otel]'\n"
