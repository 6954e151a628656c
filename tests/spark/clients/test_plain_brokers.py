"""Who leads, while brokers come and go."""

from __future__ import annotations

import time

import pytest

import moldau
from moldau.core.ids import TopicPartition
from moldau.embedded.broker import EmbeddedBroker
from moldau.embedded.cluster import run_cluster
from moldau.spark.clients.plain_brokers import GROUP, PlainBrokers
from moldau.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

GONE_S_MAX = 60.0


def test_a_leader_that_was_gone_when_another_topic_was_asked_about_is_looked_up_again() -> None:
    first, other = TopicPartition("first", 0), TopicPartition("other", 0)
    with run_cluster(3) as cluster:
        for place in (first, other):
            cluster.create_topic(place.topic, partitions=1, replication_factor=3)
        gone = cluster.leader_of(first.topic)
        stays = next(broker for number, broker in cluster.brokers.items() if number != gone)
        brokers = PlainBrokers((("bootstrap.servers", stays.bootstrap_servers),))
        assert brokers.leader(first) == address(cluster.brokers[gone])
        cluster.kill(gone)
        deadline_s = time.monotonic() + GONE_S_MAX
        while gone in cluster.seen().broker_ids:
            assert time.monotonic() < deadline_s, "the cluster did not notice"
            time.sleep(0.1)
        brokers.leader(other)
        assert brokers.leader(first) == address(cluster.brokers[cluster.leader_of(first.topic)])


def test_coordinators_of_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.spark.clients.plain_brokers.COORDINATORS_MAX", 2)
    with moldau.run() as broker:
        brokers = PlainBrokers((("bootstrap.servers", broker.bootstrap_servers),))
        for number in range(4):
            request = OffsetFetchRequest(group_id=f"group-{number}", topics=None, require_stable=True)
            brokers.ask_coordinator(GROUP, f"group-{number}", request, 7, OffsetFetchResponse, codes=lambda _: ())
        assert len(brokers._coordinators) == 2


def address(broker: EmbeddedBroker) -> tuple[str, int]:
    return broker.host, broker.port
