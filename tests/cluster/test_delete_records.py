"""DeleteRecords waits for followers that live: what it says to be deleted does not come back with another leader."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

import moldau
from moldau.core.errors import ErrorCode
from moldau.wire.messages import DeleteRecordsRequest, ListOffsetsRequest
from moldau.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from moldau.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from tests.cluster.asking import ask, until
from tests.cluster.clients import produce

ALL = frozenset({0, 1, 2})
TOPIC = "cut"
EARLIEST = -2
A_MOMENT_MS, LONG_MS = 300, 3_600_000


@pytest.fixture(scope="module")
def mortal() -> Iterator[moldau.EmbeddedCluster]:
    with moldau.run(brokers=3) as running:
        running.create_topic(TOPIC, partitions=1, replication_factor=3)
        produce(running.bootstrap_servers, TOPIC, [str(number) for number in range(100)])
        yield running


@pytest.fixture
def cluster(mortal: moldau.EmbeddedCluster) -> moldau.EmbeddedCluster:
    """All brokers run, and all replicas are in sync."""
    for broker_id, broker in mortal.brokers.items():
        if not broker.is_running:
            mortal.restart(broker_id)
    until(lambda: set(mortal.seen(TOPIC).in_sync.values()) == {ALL})
    return mortal


def leader_of(cluster: moldau.EmbeddedCluster) -> moldau.EmbeddedBroker:
    return cluster.brokers[cluster.leader_of(TOPIC)]


def follower_of(cluster: moldau.EmbeddedCluster) -> moldau.EmbeddedBroker:
    return cluster.brokers[max(ALL - {cluster.leader_of(TOPIC), cluster.controller})]


def delete(leader: moldau.EmbeddedBroker, before: int, *, timeout_ms: int) -> tuple[int, int]:
    """The error and the low watermark."""
    topic = DeleteRecordsTopic(name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=before)])
    request = DeleteRecordsRequest(topics=[topic], timeout_ms=timeout_ms)
    row = ask(leader, request, 2).topics[0].partitions[0]
    return row.error_code, row.low_watermark


def earliest(leader: moldau.EmbeddedBroker) -> int:
    topic = ListOffsetsTopic(name=TOPIC, partitions=[ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)])
    request = ListOffsetsRequest(replica_id=-1, topics=[topic])
    return int(ask(leader, request, 5).topics[0].partitions[0].offset)


@contextmanager
def paused(broker: moldau.EmbeddedBroker) -> Iterator[None]:
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if broker.is_running:
            os.kill(broker.pid, signal.SIGCONT)


def test_what_is_deleted_does_not_come_back_with_another_leader(cluster: moldau.EmbeddedCluster) -> None:
    leader = leader_of(cluster)
    assert delete(leader, 10, timeout_ms=LONG_MS) == (ErrorCode.NONE, 10)
    leader.kill()
    assert earliest(leader_of(cluster)) == 10


def test_a_follower_that_hangs_is_waited_for(cluster: moldau.EmbeddedCluster) -> None:
    leader, follower = leader_of(cluster), follower_of(cluster)
    assert delete(leader, 20, timeout_ms=LONG_MS) == (ErrorCode.NONE, 20)
    with paused(follower):
        assert delete(leader, 30, timeout_ms=A_MOMENT_MS) == (ErrorCode.REQUEST_TIMED_OUT, 20)
        assert earliest(leader) == 30, "the leader has deleted all the same"
    assert delete(leader, 30, timeout_ms=LONG_MS) == (ErrorCode.NONE, 30)


def test_a_follower_that_dies_is_waited_for_no_longer(cluster: moldau.EmbeddedCluster) -> None:
    leader, follower = leader_of(cluster), follower_of(cluster)
    with ThreadPoolExecutor(1) as thread, paused(follower):
        deleting = thread.submit(delete, leader, 40, timeout_ms=LONG_MS)
        until(lambda: earliest(leader) == 40)
        assert not deleting.done()
        follower.kill()
        assert deleting.result() == (ErrorCode.NONE, 40)
