"""A cluster whose brokers are killed, stopped and started again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import moldau
from moldau.coordinator.placement import partition_for
from tests.cluster.asking import until
from tests.cluster.clients import committed, consumer, produce, producer, read

ALL = frozenset({0, 1, 2})


@pytest.fixture(scope="module")
def mortal() -> Iterator[moldau.EmbeddedCluster]:
    with moldau.run(brokers=3, overrides={"offsets.topic.num.partitions": 6}) as running:
        running.create_topic("kept", partitions=6, replication_factor=3, config={"min.insync.replicas": 2})
        yield running


@pytest.fixture
def cluster(mortal: moldau.EmbeddedCluster) -> moldau.EmbeddedCluster:
    """All brokers run, and all replicas are in sync."""
    for broker_id, broker in mortal.brokers.items():
        if not broker.is_running:
            mortal.restart(broker_id)
    until(lambda: set(mortal.seen("kept").in_sync.values()) == {ALL})
    return mortal


def group_led_by(cluster: moldau.EmbeddedCluster, broker_id: int, prefix: str) -> str:
    leaders = cluster.seen("__consumer_offsets").leaders
    names = (f"{prefix}-{number}" for number in range(10_000))
    return next(name for name in names if leaders[partition_for(name, len(leaders))] == broker_id)


def test_another_controller_takes_over_when_it_is_killed(cluster: moldau.EmbeddedCluster) -> None:
    before = cluster.controller
    cluster.kill(before)
    until(lambda: cluster.controller not in (before, -1))
    cluster.create_topic(f"made-without-{before}", partitions=2, replication_factor=2)
    assert before not in cluster.seen(f"made-without-{before}").leaders.values()


def test_acknowledged_records_outlive_their_leader(cluster: moldau.EmbeddedCluster) -> None:
    leader = cluster.leader_of("kept", 1)
    produce(cluster.bootstrap_servers, "kept", [f"before-{number}" for number in range(500)], partition=1)
    cluster.kill(leader)
    assert cluster.leader_of("kept", 1) != leader
    produce(cluster.bootstrap_servers, "kept", [f"after-{number}" for number in range(500)], partition=1)
    reader = consumer(cluster.bootstrap_servers, "outlive")
    reader.subscribe(["kept"])
    values = {message.value().decode() for message in read(reader, 1_000)}
    reader.close()
    assert values == {f"{when}-{number}" for when in ("before", "after") for number in range(500)}


def test_a_group_goes_on_with_another_coordinator(cluster: moldau.EmbeddedCluster) -> None:
    committed(cluster.bootstrap_servers, "any", "kept")  # the coordinators' topic is made by it
    victim = cluster.leader_of("kept", 2)
    group = group_led_by(cluster, victim, "moving")
    produce(cluster.bootstrap_servers, "kept", ["x"] * 10, partition=2)
    reader = consumer(cluster.bootstrap_servers, group, **{"session.timeout.ms": 6_000})
    reader.subscribe(["kept"])
    assert read(reader, 10)
    reader.commit(asynchronous=False)
    offset = committed(cluster.bootstrap_servers, group, "kept", 2)
    cluster.kill(victim)
    assert committed(cluster.bootstrap_servers, group, "kept", 2) == offset
    produce(cluster.bootstrap_servers, "kept", ["y"] * 10, partition=2)
    found = 0
    while found < 10:
        (message,) = read(reader, 1)
        found += message.value() == b"y"
    reader.commit(asynchronous=False)
    reader.close()


def test_a_transaction_goes_on_with_another_coordinator(cluster: moldau.EmbeddedCluster) -> None:
    writer = producer(cluster.bootstrap_servers, **{"transactional.id": "moving"})
    writer.init_transactions(60)
    leaders = cluster.seen("__transaction_state").leaders
    coordinator = leaders[partition_for("moving", len(leaders))]
    writer.begin_transaction()
    for partition in range(6):
        writer.produce("kept", "in a transaction", partition=partition)
    writer.flush(60)
    cluster.kill(coordinator)
    writer.commit_transaction(120)
    reader = consumer(cluster.bootstrap_servers, "moved", **{"isolation.level": "read_committed"})
    reader.subscribe(["kept"])
    seen = 0
    while seen < 6:
        (message,) = read(reader, 1)
        seen += message.value() == b"in a transaction"
    reader.close()


def test_a_stopped_broker_hands_over_first(cluster: moldau.EmbeddedCluster) -> None:
    """No record is refused, or comes late, because a leader is stopped as it should be."""
    leader = cluster.leader_of("kept", 3)
    cluster.stop(leader)
    assert "stops all the same" not in cluster.brokers[leader].output()
    assert leader not in cluster.seen("kept").leaders.values()
    assert all(leader not in in_sync for in_sync in cluster.seen("kept").in_sync.values())


def test_all_of_them_start_again(cluster: moldau.EmbeddedCluster) -> None:
    produce(cluster.bootstrap_servers, "kept", ["kept"] * 100, partition=4)
    for broker_id in cluster.brokers:
        cluster.kill(broker_id)
    cluster.start()
    until(lambda: set(cluster.seen("kept").in_sync.values()) == {ALL})
    reader = consumer(cluster.bootstrap_servers, "again")
    reader.subscribe(["kept"])
    found = 0
    while found < 100:
        (message,) = read(reader, 1)
        found += message.value() == b"kept"
    reader.close()


def test_a_rolling_restart_refuses_nothing(cluster: moldau.EmbeddedCluster) -> None:
    def restart_all() -> None:
        for broker_id in cluster.brokers:
            cluster.restart(broker_id)
            until(lambda: set(cluster.seen("kept").in_sync.values()) == {ALL})

    answers: list[object] = []
    count = 0
    writer = producer(cluster.bootstrap_servers, **{"enable.idempotence": True})
    with ThreadPoolExecutor(1) as thread:
        rolling = thread.submit(restart_all)
        while not rolling.done():
            writer.produce("kept", f"rolling-{count}", on_delivery=lambda wrong, _: answers.append(wrong))
            count += 1
            writer.poll(0.01)
        rolling.result()
    assert writer.flush(60) == 0
    assert answers == [None] * count
