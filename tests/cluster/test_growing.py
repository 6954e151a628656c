"""From one broker to a cluster, with all that the one had."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import moldau
from moldau.embedded.members import MOVING, make_room_for_others
from moldau.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.cluster.asking import ask, until
from tests.cluster.clients import committed, consumer, produce, read
from tests.cluster.members import chroot, start_member, writing
from tests.cluster.members import values_of as values_in
from tests.store.ensemble import Ensemble

VALUES = [f"value-{number}" for number in range(100)]


def filled(data: Path) -> None:
    """The data of one broker, with topics whose folders have the names of brokers' folders."""
    with moldau.run(data_dir=data) as alone:
        for topic in ("orders", "broker"):
            alone.create_topic(topic, partitions=2)
            produce(alone.bootstrap_servers, topic, VALUES)
        reader = consumer(alone.bootstrap_servers, "readers")
        reader.subscribe(["orders"])
        read(reader, len(VALUES))
        reader.commit(asynchronous=False)
        reader.close()


def values_of(bootstrap: str, topic: str) -> list[str]:
    reader = consumer(bootstrap, f"of-{topic}")
    reader.subscribe([topic])
    found = [message.value().decode() for message in read(reader, len(VALUES))]
    reader.close()
    return found


def test_data_of_a_single_broker_stays_when_it_grows(tmp_path: Path) -> None:
    data = tmp_path / "data"
    filled(data)
    with moldau.run(brokers=3, data_dir=data) as cluster:
        assert cluster.seen("orders").broker_ids == {0, 1, 2}
        for topic in ("orders", "broker"):
            assert sorted(values_of(cluster.bootstrap_servers, topic)) == sorted(VALUES)
        offsets = [committed(cluster.bootstrap_servers, "readers", "orders", index) for index in range(2)]
        assert sum(max(offset, 0) for offset in offsets) == len(VALUES), "one partition may have got nothing"
        cluster.create_topic("spread", partitions=3, replication_factor=3)
        assert set(cluster.seen("spread").leaders.values()) == {0, 1, 2}
    with moldau.run(brokers=3, data_dir=data) as again:
        assert sorted(values_of(again.bootstrap_servers, "broker")) == sorted(VALUES)


def test_a_broker_alone_takes_no_data_of_several(tmp_path: Path) -> None:
    """`moldau start` in place of `moldau start --brokers 2` took all of the folder for its own data."""
    data = tmp_path / "data"
    with moldau.run(brokers=2, data_dir=data) as cluster:
        cluster.create_topic("orders", partitions=2, replication_factor=2)
        produce(cluster.bootstrap_servers, "orders", VALUES)
    refused = r"data has the data of several brokers \(broker-0, broker-1\); start them with --brokers 2"
    with pytest.raises(moldau.BrokerFailed, match=refused):
        moldau.run(data_dir=data)
    assert not (data / "meta.properties").exists()
    (data / "meta.properties").write_bytes((data / "broker-0" / "meta.properties").read_bytes())
    with moldau.run(brokers=2, data_dir=data) as again:
        assert sorted(values_of(again.bootstrap_servers, "orders")) == sorted(VALUES)


@pytest.mark.parametrize("accept", [(), ("--accept-lost-log-dirs",)], ids=["plain", "accept-lost"])
def test_one_of_several_brokers_is_not_started_by_itself(tmp_path: Path, accept: tuple[str, ...]) -> None:
    """Advised to give up metadata that was there, it led all partitions in a cluster with the same id."""
    data = tmp_path / "data"
    moldau.run(brokers=2, data_dir=data).close()
    command = [sys.executable, "-m", "moldau", "start", "--port", "0", "--no-kafka-environment", *accept]
    alone = subprocess.run(
        [*command, "--data-dir", data / "broker-1", "--override", "node.id=1"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert alone.returncode == 1
    assert alone.stderr == (
        f"moldau start: {data}/broker-1 is that of one of several brokers, and their metadata is "
        f"{data}/moldau-metadata.db; start all of them with --brokers and --data-dir {data}\n"
    )


@pytest.mark.parametrize("where", ["one of several", "ZooKeeper"])
def test_data_whose_metadata_is_elsewhere_is_left_as_it_is(tmp_path: Path, where: str) -> None:
    """A folder too deep, or a forgotten zookeeper.connect: all partitions of the broker became strays."""
    moldau.run(brokers=2, data_dir=tmp_path / "data").close()
    data = tmp_path / "data" / "broker-1"
    if where == "ZooKeeper":
        (data / "moldau-metadata.location").write_text("ZooKeeper at h1:2181/x\n")
    before = sorted(data.rglob("*"))
    with pytest.raises(moldau.BrokerFailed, match=f"{data} is the data of one broker, and its metadata is in "):
        moldau.run(brokers=2, data_dir=data)
    assert sorted(data.rglob("*")) == before


def test_data_of_a_broker_that_runs_is_not_taken_for_a_cluster(tmp_path: Path) -> None:
    running = moldau.run(data_dir=tmp_path / "data")
    with running, pytest.raises(moldau.BrokerFailed, match=f"data is in use: process {running.pid} holds"):
        moldau.run(brokers=2, data_dir=tmp_path / "data")


def test_moving_the_data_is_finished_after_a_crash(tmp_path: Path) -> None:
    """At any moment of it: here one with some of the folders moved, and one with all but the name."""
    data = tmp_path / "data"
    (data / MOVING).mkdir(parents=True)
    (data / "meta.properties").write_text("node.id=4\ncluster.id=abc\nversion=1\n")
    (data / "moldau-metadata.db").write_text("metadata")
    for name in ("broker-0", "broker-1", "orders-0"):
        (data / name).mkdir()
    (data / MOVING / "orders-1").mkdir()
    make_room_for_others(data)
    moved = {"broker-0", "broker-1", "orders-0", "orders-1", "meta.properties"}
    assert {path.name for path in data.iterdir()} == {"broker-4", "moldau-metadata.db", ".lock"}
    assert {path.name for path in (data / "broker-4").iterdir()} == moved
    (data / "broker-4").rename(data / MOVING)
    make_room_for_others(data)
    assert {path.name for path in (data / "broker-4").iterdir()} == moved


def spread(cluster: moldau.EmbeddedCluster, topic: str) -> None:
    """All partitions of a topic to all brokers."""
    ids = sorted(cluster.brokers)
    partitions = [ReassignablePartition(index, ids) for index in cluster.seen(topic).leaders]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(topic, partitions)])
    answer = ask(cluster.brokers[ids[0]], request, 0)
    assert answer.error_code == 0
    assert [row.error_code for row in answer.responses[0].partitions] == [0] * len(partitions)
    until(lambda: set(cluster.seen(topic).in_sync.values()) == {frozenset(ids)})


@pytest.mark.xdist_group("store")
def test_one_broker_becomes_a_cluster_in_zookeeper_while_its_clients_go_on(ensemble: Ensemble, tmp_path: Path) -> None:
    connect = ensemble.connect + chroot()
    data = tmp_path / "data-0"
    alone = moldau.run(data_dir=data, overrides={"offsets.topic.num.partitions": 3})
    port = alone.port
    alone.create_topic("orders", partitions=2)
    with writing(alone.bootstrap_servers, "orders") as writes:
        reader = consumer(alone.bootstrap_servers, "readers")
        reader.subscribe(["orders"])
        read(reader, 10)
        reader.commit(asynchronous=False)
        reader.close()
        offsets = [committed(alone.bootstrap_servers, "readers", "orders", index) for index in range(2)]
        alone.dispose()
        move = ["metadata-move", "--data-dir", str(data), "--zookeeper-connect", connect]
        subprocess.run([sys.executable, "-m", "moldau", *move], check=True, capture_output=True, timeout=60)
        first = start_member(0, tmp_path, connect, port=port)
        others = {each: start_member(each, tmp_path, connect) for each in (1, 2)}
        with moldau.EmbeddedCluster({0: first, **others}, data_dir=tmp_path, scratch=tmp_path / "scratch") as cluster:
            until(lambda: cluster.seen().broker_ids == {0, 1, 2})
            for topic in ("orders", "__consumer_offsets"):
                spread(cluster, topic)
            writes.until_more()
            cluster.kill(0)
            writes.until_more()
            writes.stop()
            bootstrap = others[1].bootstrap_servers
            assert [committed(bootstrap, "readers", "orders", index) for index in range(2)] == offsets
            until(writes.is_done)
            found = values_in(cluster, "orders", len(writes.acknowledged))
            assert sorted(found) == sorted(writes.acknowledged)
