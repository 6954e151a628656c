"""Real consumers in groups, over the wire. The tests hold for Apache Kafka too: `--broker apache` shows it."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.faults.clients import create_topic

SETTLE_S = 40.0
PARTITIONS = 4


@pytest.fixture
def topic(bootstrap: str) -> str:
    name = f"topic-{uuid.uuid4().hex[:10]}"
    create_topic(bootstrap, name, partitions=PARTITIONS)
    return name


@pytest.fixture
def group_id() -> str:
    return f"group-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def consumers(bootstrap: str, topic: str, group_id: str) -> Iterator[Callable[..., Reader]]:
    """Readers of one group, closed at the end of the test."""
    with ExitStack() as open_readers:

        def make(**settings: Any) -> Reader:
            reader = Reader(bootstrap, topic, {"group.id": group_id, **settings})
            open_readers.callback(reader.close)
            return reader

        yield make


class Reader:
    """A consumer that is polled by hand and remembers what it was given."""

    def __init__(self, bootstrap: str, topic: str, settings: dict[str, Any]) -> None:
        self.seen: list[bytes] = []
        self.rebalances = 0
        self.is_open = True
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 500,
                **settings,
            }
        )
        self.consumer.subscribe([topic], on_assign=self._assigned)

    def _assigned(self, _consumer: Any, _partitions: Any) -> None:
        self.rebalances += 1

    def poll(self) -> None:
        message = self.consumer.poll(0.05)
        if message is not None and message.error() is None:
            self.seen.append(message.value())

    @property
    def partitions(self) -> set[int]:
        return {each.partition for each in self.consumer.assignment()}

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self.consumer.close()


def until(condition: Callable[[], bool], *readers: Reader, what: str) -> None:
    deadline_s = time.monotonic() + SETTLE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"waited {SETTLE_S} s for {what}"
        for reader in readers:
            reader.poll()


def produce(bootstrap: str, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number, value in enumerate(values):
        producer.produce(topic, value.encode(), partition=number % PARTITIONS)
    assert producer.flush(SETTLE_S) == 0


def shared(*readers: Reader) -> bool:
    """Every partition has one owner, and nobody has none."""
    owned = [reader.partitions for reader in readers]
    return all(owned) and sorted(index for each in owned for index in each) == list(range(PARTITIONS))


STRATEGIES = ["range", "roundrobin", "cooperative-sticky"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_members_share_the_partitions_and_take_over_from_who_leaves(
    consumers: Callable[..., Reader], strategy: str
) -> None:
    settings = {"partition.assignment.strategy": strategy}
    first = consumers(**settings)
    until(lambda: shared(first), first, what="the first to have all")
    second = consumers(**settings)
    until(lambda: shared(first, second), first, second, what="both to have some")
    first.close()
    until(lambda: shared(second), second, what="the second to have all")


DOOMED = """
import sys
from confluent_kafka import Consumer
bootstrap, topic, group = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "session.timeout.ms": 6000})
consumer.subscribe([topic])
while True:
    consumer.poll(0.05)
"""


def test_a_member_that_is_killed_is_replaced_after_its_session(
    bootstrap: str, topic: str, group_id: str, consumers: Callable[..., Reader]
) -> None:
    reader = consumers()
    until(lambda: shared(reader), reader, what="the reader to have all")
    doomed = subprocess.Popen([sys.executable, "-c", DOOMED, bootstrap, topic, group_id])
    try:
        until(lambda: len(reader.partitions) == PARTITIONS // 2, reader, what="the other to have some")
    finally:
        doomed.kill()
        doomed.wait()
    until(lambda: shared(reader), reader, what="the reader to have all again")


def test_who_comes_later_goes_on_where_the_group_stood(
    bootstrap: str, topic: str, consumers: Callable[..., Reader]
) -> None:
    produce(bootstrap, topic, *[f"a{number}" for number in range(8)])
    first = consumers()
    until(lambda: len(first.seen) == 8, first, what="the first records")
    first.consumer.commit(asynchronous=False)
    first.close()
    produce(bootstrap, topic, *[f"b{number}" for number in range(8)])
    second = consumers()
    until(lambda: len(second.seen) == 8, second, what="the records after them")
    assert sorted(second.seen) == [f"b{number}".encode() for number in range(8)]


def test_a_static_member_restarts_without_a_rebalance(consumers: Callable[..., Reader]) -> None:
    settings = {"session.timeout.ms": 30_000}
    first, second = (consumers(**settings, **{"group.instance.id": name}) for name in ("i", "j"))
    until(lambda: shared(first, second), first, second, what="both to have some")
    before, rebalances = second.partitions, first.rebalances
    second.close()  # a static member does not leave
    again = consumers(**settings, **{"group.instance.id": "j"})
    until(lambda: bool(again.partitions), first, again, what="the restarted one to have some")
    assert (again.partitions, first.rebalances) == (before, rebalances)


def test_an_administrator_sees_and_moves_a_group(
    bootstrap: str, topic: str, group_id: str, consumers: Callable[..., Reader]
) -> None:
    produce(bootstrap, topic, *[f"a{number}" for number in range(8)])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    reader = consumers()
    until(lambda: len(reader.seen) == 8, reader, what="the records")
    reader.consumer.commit(asynchronous=False)
    described = admin.describe_consumer_groups([group_id])[group_id].result(SETTLE_S)
    assert (described.state.name, described.partition_assignor) == ("STABLE", "range")
    assert {each.partition for each in described.members[0].assignment.topic_partitions} == set(range(PARTITIONS))
    reader.close()
    moved = ConsumerGroupTopicPartitions(group_id, [TopicPartition(topic, 0, 1)])
    admin.alter_consumer_group_offsets([moved])[group_id].result(SETTLE_S)
    listed = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group_id)])[group_id].result(SETTLE_S)
    assert {each.partition: each.offset for each in listed.topic_partitions} == {0: 1, 1: 2, 2: 2, 3: 2}
    assert group_id in {each.group_id for each in admin.list_consumer_groups().result(SETTLE_S).valid}
    admin.delete_consumer_groups([group_id])[group_id].result(SETTLE_S)
    assert group_id not in {each.group_id for each in admin.list_consumer_groups().result(SETTLE_S).valid}
