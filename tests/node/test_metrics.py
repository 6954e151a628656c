"""/metrics, /health and /ready of a broker that runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

import moldau
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from tests.scraping import get, scrape


@pytest.fixture(scope="module")
def broker() -> Iterator[moldau.EmbeddedBroker]:
    with moldau.run(metrics=True) as running:
        yield running


def url(broker: moldau.EmbeddedBroker) -> str:
    assert broker.metrics_url is not None
    return broker.metrics_url


def test_a_broker_tells_of_its_process(broker: moldau.EmbeddedBroker) -> None:
    found = scrape(url(broker))
    assert 10e6 < found.value("process_resident_memory_bytes") < 500e6
    there = len(os.listdir(f"/proc/{broker.pid}/fd"))
    assert there <= found.value("process_open_fds") <= there + 1, "our connection may be gone"
    assert found.value("process_cpu_seconds_total") > 0
    assert found.value("moldau_metrics_failures_total") == 0


def test_probes_are_answered(broker: moldau.EmbeddedBroker) -> None:
    health, ready = get(url(broker), "/health"), get(url(broker), "/ready")
    assert (health.status, health.json()["status"]) == (200, "healthy")
    assert (ready.status, ready.json()["status"]) == (200, "ready")
    assert health.json()["broker_id"] == 0


def test_other_paths_and_methods_are_refused(broker: moldau.EmbeddedBroker) -> None:
    assert get(url(broker), "/nothing").status == 404
    assert get(url(broker), "/metrics?x=1").status == 200
    assert get(url(broker), "/").status == 200
    posted = get(url(broker), "/metrics", method="POST")
    assert (posted.status, posted.headers["allow"]) == (405, "GET, HEAD")
    head = get(url(broker), "/metrics", method="HEAD")
    assert (head.status, head.body) == (200, b"")
    assert int(head.headers["content-length"]) > 1_000


def test_a_broker_without_metrics_loads_nothing_of_them() -> None:
    look = (
        "import sys, moldau.node.server, moldau.node.command;"
        "apart = ('moldau.broker.metrics', 'moldau.broker.telemetry', 'moldau.telemetry', 'opentelemetry');"
        "apart += ('h11', 'http');"
        "print([name for name in sys.modules if name.startswith(apart)])"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9404", "127.0.0.1:9404"),
        ("0.0.0.0:1", "0.0.0.0:1"),
        ("[::1]:0", "[::1]:0"),
        ("host.example:80", "host.example:80"),
    ],
)
def test_a_listener_for_metrics_is_on_loopback_unless_a_host_is_named(text: str, address: str) -> None:
    assert str(BrokerConfig.of({"metrics.listener": text}).metrics_listener) == address


@pytest.mark.parametrize("text", ["x", "host:", ":9404", "70000", "a..b:1", "http://h:1", "::1:9404", "-1"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"metrics\.listener.*\[HOST:\]PORT"):
        BrokerConfig.of({"metrics.listener": text})


def test_metrics_are_off_unless_they_are_asked_for() -> None:
    assert BrokerConfig.of({}).metrics_listener is None
    assert BrokerConfig.of({"metrics.listener": ""}).metrics_listener is None
    with moldau.run() as broker:
        assert broker.metrics_url is None


def test_a_taken_port_is_one_line(broker: moldau.EmbeddedBroker) -> None:
    taken = url(broker).removeprefix("http://").removesuffix("/metrics")
    done = subprocess.run(
        [sys.executable, "-m", "moldau", "start", "--port", "0", "--metrics", taken],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (
        1,
        f"moldau start: Address already in use: http://{taken}; another program listens there, choose a different port "
        "with --metrics\n",
    )


def test_a_wrong_argument_says_what_is_allowed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "moldau", "start", "--metrics", "nowhere"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "moldau start: argument --metrics: 'nowhere' is no address for metrics; expected [HOST:]PORT, as in "
        "9404, 0.0.0.0:9404 or [::1]:0; port 0 picks a free one; see: moldau start --help"
    )


def test_a_restarted_broker_answers_where_it_did() -> None:
    with moldau.run(metrics=True) as broker:
        before = broker.metrics_url
        broker.restart()
        assert broker.metrics_url == before
        assert scrape(before).value("process_threads") >= 1


def test_every_broker_of_a_cluster_has_a_port_of_its_own() -> None:
    with moldau.run(brokers=2, metrics=True) as cluster:
        told = {
            broker.metrics_url: get(url(broker), "/ready").json()["broker_id"] for broker in cluster.brokers.values()
        }
        assert sorted(told.values()) == [0, 1]
