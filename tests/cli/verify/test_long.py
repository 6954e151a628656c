"""Every scenario, on brokers of ours and on clusters that are given with commands: ours, and Apache Kafka's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import moldau
from moldau.cli.verify.catalogue import SCENARIOS
from tests.apache_cluster import ApacheCluster
from tests.cli.verify.conftest import leftovers, pause, report, resume, verify
from tests.cli.verify.controlling import controlled

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

SETTINGS = {
    "node.id": 1, "group.initial.rebalance.delay.ms": 0, "replica.lag.time.max.ms": 3_000,
    "offsets.topic.num.partitions": 6, "transaction.state.log.num.partitions": 6, "min.insync.replicas": 2,
    "default.replication.factor": 3,
}  # fmt: skip
APACHE = {
    **{key: value for key, value in SETTINGS.items() if key != "node.id"},
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "broker.session.timeout.ms": 3_000,
    "broker.heartbeat.interval.ms": 500,
}
OF_EACH = {
    "leader-election": ("election_ms", "acknowledged_ms", "in_sync_ms"),
    "preferred-election": ("moved_ms",),
    "controller-election": ("controller_ms", "topic_made_ms"),
    "rolling-restart": ("restart_ms", "in_sync_ms"),
    "rolling-restart-consumers": ("classic_pause_ms", "static_pause_ms", "consumer_pause_ms"),
    "rolling-restart-producers": ("transactions",),
    "unclean-election": ("expected_loss",),
    "client-lost": ("taken_over_ms", "reader_stuck_ms"),
    "paused-broker": ("isr_shrunk_ms", "in_sync_ms"),
    "slow-disk": ("acknowledged_per_s_slow",),
}


def check(found: Mapping[str, Any], names: set[str]) -> None:
    assert found.keys() == {each.name for each in SCENARIOS}
    for name, row in found.items():
        if name not in names:
            assert row["verdict"] == "skipped"
            continue
        assert (row["verdict"], row["complaints"]) == ("held", [])
        assert row["acknowledged"] > 0
        assert row["figures"].keys() >= set(OF_EACH[name])
    assert found["unclean-election"]["figures"]["expected_loss"] > 0


def test_all_on_brokers_of_ours() -> None:
    finished = verify("-o", "json")
    assert finished.returncode == 0, finished.stderr
    check(report(finished), {each.name for each in SCENARIOS})
    assert json.loads(finished.stdout)["settings"]["consumer"]["session.timeout.ms"]["value"] >= 9_000


@contextmanager
def ours(folder: Path) -> Iterator[tuple[str, list[str]]]:
    with moldau.run(brokers=3, overrides=SETTINGS) as cluster:
        actions = {
            "kill": cluster.kill,
            "start": cluster.restart,
            "restart": cluster.restart,
            "pause": lambda each: pause(cluster.brokers[each].pid),
            "resume": lambda each: resume(cluster.brokers[each].pid),
        }
        with controlled(folder, actions) as options:
            yield cluster.bootstrap_servers, options


@contextmanager
def apache(folder: Path) -> Iterator[tuple[str, list[str]]]:
    with ApacheCluster(properties=APACHE) as cluster:
        actions = {
            "kill": cluster.kill,
            "start": cluster.restart,
            "restart": cluster.restart,
            "pause": lambda each: pause(cluster.pid_of(each)),
            "resume": lambda each: resume(cluster.pid_of(each)),
        }
        with controlled(folder, actions) as options:
            yield cluster.bootstrap_servers, options


@pytest.mark.parametrize("kind", [ours, apache], ids=["moldau", "apache"])
def test_all_on_a_given_cluster(tmp_path: Path, kind: Any) -> None:
    with kind(tmp_path) as (servers, options):
        given = ["-b", servers, "--yes", "--rounds", "2", "-o", "json", *options]
        finished = verify(*given)
        assert finished.returncode == 0, finished.stderr + finished.stdout
        check(report(finished), {each.name for each in SCENARIOS} - {"slow-disk"})
        assert leftovers(servers) == ([], [])


def test_over_tls_with_a_login(tmp_path: Path) -> None:
    """Whatever is asked and sent by itself, as the admin of a secured cluster."""
    with moldau.run(brokers=3, secure=True) as cluster:
        path = tmp_path / "client.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in cluster.clients.confluent.items()))
        path.chmod(0o600)
        finished = verify("preferred-election", "client-lost", "--yes", "--command-config", str(path), "-o", "json")
        assert finished.returncode == 0, finished.stderr
        assert {row["verdict"] for row in report(finished).values()} == {"held"}


def test_weak_acknowledgements_and_a_clean_bill_do_not_go_together(tmp_path: Path) -> None:
    """With acks=1 and elections of whoever is there, a killed leader's last records are lost, and that is told."""
    with moldau.run(brokers=3, overrides={**SETTINGS, "min.insync.replicas": 1}) as cluster:
        paused: list[int] = []

        def kill(broker: int) -> None:
            """The followers are held up first, so that the leader acknowledges what nobody else has."""
            paused[:] = [each for each in cluster.brokers if each != broker]
            for each in paused:
                pause(cluster.brokers[each].pid)
            settle(1.0)
            cluster.kill(broker)
            for each in paused:
                resume(cluster.brokers[each].pid)

        with controlled(tmp_path, {"kill": kill, "start": cluster.restart}) as options:
            finished = verify(
                "leader-election", "-b", cluster.bootstrap_servers, "--yes", "--acks", "1", "--rounds", "1", "-o",
                "json", *options,
            )  # fmt: skip
            found = report(finished)["leader-election"]
            assert (finished.returncode, found["verdict"]) == (1, "FAILED"), finished.stderr
            assert found["lost"] > 0


def settle(duration_s: float) -> None:
    """Records are acknowledged meanwhile: there is nothing else to wait for."""
    import threading

    threading.Event().wait(duration_s)
