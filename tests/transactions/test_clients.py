"""Transactional producers and readers of committed records, over the wire; `--broker apache` holds Kafka to it too."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.faults.clients import create_topic

SETTLE_S = 30.0
PARTITIONS = 2


@pytest.fixture
def topic(bootstrap: str) -> str:
    name = f"topic-{uuid.uuid4().hex[:10]}"
    create_topic(bootstrap, name, partitions=PARTITIONS)
    return name


@pytest.fixture
def transactional_id() -> str:
    return f"id-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def producer(bootstrap: str, transactional_id: str) -> Producer:
    return initialised(bootstrap, transactional_id)


def initialised(bootstrap: str, transactional_id: str, **settings: object) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id, **settings})
    producer.init_transactions(SETTLE_S)
    return producer


def write(producer: Producer, topic: str, *values: str) -> None:
    for number, value in enumerate(values):
        producer.produce(topic, value.encode(), partition=number % PARTITIONS)
    assert producer.flush(SETTLE_S) == 0


def read(bootstrap: str, topic: str, *, isolation: str = "read_committed", count: int | None = None) -> list[str]:
    """Everything up to the end that the isolation level allows, or as soon as there are `count` records."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{uuid.uuid4().hex}",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    seen: list[str] = []
    ended: set[int] = set()
    deadline_s = time.monotonic() + SETTLE_S
    try:
        while len(ended) < PARTITIONS if count is None else len(seen) < count:
            assert time.monotonic() < deadline_s, f"read {seen}, then nothing"
            message = consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is None:
                seen.append(message.value().decode())
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise KafkaException(error)
    finally:
        consumer.close()
    return sorted(seen)


def until(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + SETTLE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"waited {SETTLE_S} s for {what}"
        time.sleep(0.05)


def test_committed_records_are_read_and_aborted_ones_are_not(bootstrap: str, topic: str, producer: Producer) -> None:
    producer.begin_transaction()
    write(producer, topic, "a", "b", "c")
    producer.commit_transaction(SETTLE_S)
    producer.begin_transaction()
    write(producer, topic, "lost 1", "lost 2")
    producer.abort_transaction(SETTLE_S)
    producer.begin_transaction()
    write(producer, topic, "d", "e")
    producer.commit_transaction(SETTLE_S)
    assert read(bootstrap, topic, count=5) == ["a", "b", "c", "d", "e"]
    assert read(bootstrap, topic) == ["a", "b", "c", "d", "e"]
    assert len(read(bootstrap, topic, isolation="read_uncommitted")) == 7


def test_what_is_undecided_is_not_read(bootstrap: str, topic: str, producer: Producer) -> None:
    producer.begin_transaction()
    write(producer, topic, "a", "b")
    plain = Producer({"bootstrap.servers": bootstrap})
    write(plain, topic, "c", "d")
    assert read(bootstrap, topic) == []
    assert read(bootstrap, topic, isolation="read_uncommitted") == ["a", "b", "c", "d"]
    producer.commit_transaction(SETTLE_S)
    assert read(bootstrap, topic, count=4) == ["a", "b", "c", "d"]


def test_a_reader_that_waits_hears_of_a_commit_at_once(bootstrap: str, topic: str, producer: Producer) -> None:
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "waiting",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 20_000,
            "fetch.min.bytes": 150,
            "socket.timeout.ms": 60_000,
        }
    )
    reader.assign([TopicPartition(topic, 0, 0)])
    producer.begin_transaction()
    producer.produce(topic, b"x" * 200, partition=0)
    assert producer.flush(SETTLE_S) == 0
    assert reader.poll(1.0) is None
    producer.commit_transaction(SETTLE_S)
    message = reader.poll(10.0)
    reader.close()
    assert message is not None
    assert message.value() == b"x" * 200


def test_offsets_are_committed_with_the_transaction_or_not_at_all(
    bootstrap: str, topic: str, producer: Producer
) -> None:
    write(Producer({"bootstrap.servers": bootstrap}), topic, "in 1", "in 2")
    group_id = f"group-{uuid.uuid4().hex[:10]}"
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group_id, "enable.auto.commit": False})
    places = [TopicPartition(topic, 0, 1)]

    def committed() -> int:
        found = consumer.committed([TopicPartition(topic, 0)], SETTLE_S)
        return int(found[0].offset)

    try:
        producer.begin_transaction()
        write(producer, topic, "out 1")
        producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), SETTLE_S)
        producer.abort_transaction(SETTLE_S)
        assert committed() < 0
        producer.begin_transaction()
        write(producer, topic, "out 2")
        producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), SETTLE_S)
        producer.commit_transaction(SETTLE_S)
        until(lambda: committed() == 1, "the offset to count")
    finally:
        consumer.close()


def test_a_second_producer_fences_the_first(bootstrap: str, topic: str, transactional_id: str) -> None:
    zombie = initialised(bootstrap, transactional_id)
    zombie.begin_transaction()
    write(zombie, topic, "lost 1", "lost 2")
    successor = initialised(bootstrap, transactional_id)
    with pytest.raises(KafkaException) as refused:
        zombie.commit_transaction(SETTLE_S)
    assert refused.value.args[0].fatal()
    successor.begin_transaction()
    write(successor, topic, "kept 1", "kept 2")
    successor.commit_transaction(SETTLE_S)
    assert read(bootstrap, topic, count=2) == ["kept 1", "kept 2"]


def test_a_transaction_that_lasts_too_long_is_aborted(bootstrap: str, topic: str, transactional_id: str) -> None:
    slow = initialised(bootstrap, transactional_id, **{"transaction.timeout.ms": 1_000})
    slow.begin_transaction()
    write(slow, topic, "lost 1", "lost 2")
    write(Producer({"bootstrap.servers": bootstrap}), topic, "kept 1", "kept 2")
    assert read(bootstrap, topic, count=2) == ["kept 1", "kept 2"]
    with pytest.raises(KafkaException):
        slow.commit_transaction(SETTLE_S)
