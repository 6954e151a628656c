"""Groups in the states that a tool may find them in."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from moldau.client.cluster import Cluster
from moldau.client.groups.committed import commit_offsets
from moldau.core.ids import TopicPartition as Place

JOIN_S_MAX = 30.0
RECORDS = 10


@pytest.fixture
def group() -> str:
    return f"billing-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def filled(bootstrap: str, topic: str) -> str:
    """Ten records in the first of two partitions, none in the other."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(RECORDS):
        producer.produce(topic, b"v", partition=0)
    assert producer.flush(JOIN_S_MAX) == 0
    return topic


@pytest.fixture
def resting(bootstrap: str, filled: str, group: str) -> str:
    """A group without members that has read four records of the first partition."""
    with Cluster(bootstrap, client_id="test", timeout_s=JOIN_S_MAX) as cluster:
        assert set(commit_offsets(cluster, group, {Place(filled, 0): 4}).values()) == {0}
    return group


@pytest.fixture
def active(bootstrap: str, filled: str, group: str) -> Iterator[str]:
    """A group of one member, which has read four records and has both partitions."""
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "client.id": "clerk", "enable.auto.commit": False}
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe([filled])
        until(lambda: consumer.poll(0.1) is None and len(consumer.assignment()) == 2)
        consumer.commit(offsets=[TopicPartition(filled, 0, 4)], asynchronous=False)
        yield group


def until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + JOIN_S_MAX
    while not is_so():
        assert time.monotonic() < deadline_s
