"""Three brokers whose metadata is in a ZooKeeper ensemble, and which are killed."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

import moldau
from tests.cluster.asking import until
from tests.cluster.clients import produce, producer
from tests.cluster.members import chroot, three_members, values_of
from tests.store.ensemble import Ensemble

pytestmark = pytest.mark.xdist_group("store")

ALL = frozenset({1, 2, 3})
SESSION_S = 18.0
PARTITIONS = 6


@pytest.fixture(scope="module")
def connect(ensemble: Ensemble) -> str:
    return ensemble.connect.replace(",", ";") + chroot()


@pytest.fixture(scope="module")
def mortal(connect: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[moldau.EmbeddedCluster]:
    folder = tmp_path_factory.mktemp("brokers")
    with three_members(
        folder, dict.fromkeys(ALL, connect), broker_rack="r1", zookeeper_session_timeout_ms=int(SESSION_S * 1_000)
    ) as running:
        running.create_topic("kept", partitions=PARTITIONS, replication_factor=3, config={"min.insync.replicas": 2})
        yield running


@pytest.fixture
def cluster(mortal: moldau.EmbeddedCluster) -> moldau.EmbeddedCluster:
    """All brokers run, and all replicas are in sync."""
    for broker_id, broker in mortal.brokers.items():
        if not broker.is_running:
            mortal.restart(broker_id)
    until(lambda: set(mortal.seen("kept").in_sync.values()) == {ALL})
    return mortal


def test_operators_find_what_they_know(cluster: moldau.EmbeddedCluster, connect: str) -> None:
    client = KazooClient(connect.replace(";", ","))
    client.start()
    try:
        broker = json.loads(client.get("/brokers/ids/2")[0])
        address = cluster.brokers[2].address
        assert (broker["host"], broker["port"], broker["rack"]) == (address.host, address.port, "r1")
        assert broker["endpoints"] == [f"PLAINTEXT://{address}"]
        assert sorted(client.get_children("/brokers/ids")) == ["1", "2", "3"]
        assert json.loads(client.get("/controller")[0])["brokerid"] == cluster.controller
        assert int(client.get("/controller_epoch")[0]) >= 1
        assert json.loads(client.get("/cluster/id")[0])["id"]
    finally:
        client.stop()
        client.close()
    line = f"metadata in ZooKeeper at {connect}"
    assert all(line in each.output() for each in cluster.brokers.values())


@pytest.mark.parametrize("victim", ["leader", "controller", "both"])
def test_a_killed_broker_is_replaced_long_before_its_session_ends(cluster: moldau.EmbeddedCluster, victim: str) -> None:
    """Half a second on a machine that has nothing else to do; what is asserted is that nobody waits for the session."""
    seen = cluster.seen("kept")
    is_led_by_controller = {index: leader == seen.controller_id for index, leader in seen.leaders.items()}
    partition = next(each for each, is_led in is_led_by_controller.items() if is_led == (victim == "both"))
    killed = seen.controller_id if victim == "controller" else seen.leaders[partition]
    writer = producer(cluster.bootstrap_servers, **{"retry.backoff.ms": 20, "reconnect.backoff.max.ms": 100})
    writer.produce("kept", f"before-{victim}", partition=partition)
    assert writer.flush(60) == 0
    cluster.kill(killed)
    begun_s = time.monotonic()
    failures: list[object] = []
    writer.produce("kept", f"after-{victim}", partition=partition, on_delivery=lambda wrong, _: failures.append(wrong))
    assert writer.flush(60) == 0
    cluster.create_topic(f"made-without-{victim}", partitions=1, replication_factor=2)
    took_s = time.monotonic() - begun_s
    assert failures == [None]
    assert took_s < SESSION_S / 2, "nobody waited for the session"
    assert cluster.controller != killed


def kept_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("kept-*/*.log")))


def test_a_broker_that_lost_its_disk_takes_its_replicas_up_again(cluster: moldau.EmbeddedCluster) -> None:
    values = [f"disk-{number}" for number in range(300)]
    produce(cluster.bootstrap_servers, "kept", values)
    victim = cluster.leader_of("kept", 0)
    cluster.kill(victim)
    folder = cluster.brokers[victim].data_dir
    shutil.rmtree(folder)
    cluster.restart(victim)
    until(lambda: set(cluster.seen("kept").in_sync.values()) == {ALL})
    assert "a log directory was replaced, and" in cluster.brokers[victim].output()
    assert len({kept_bytes(broker.data_dir) for broker in cluster.brokers.values()}) == 1
    assert set(values) <= set(values_of(cluster, "kept", 300 + 6))
