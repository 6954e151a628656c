"""Real clients, librdkafka's, in the few moves that the fault tests need."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

READ_S_MAX = 60.0
PATIENT = {  # a client that never gives up on a broker that is down for a moment
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "message.timeout.ms": 120_000,
}


@dataclass(frozen=True, slots=True)
class Stored:
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp_ms: int


def create_topic(bootstrap: str, name: str, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
    """With as many replicas as the brokers give to a topic by default."""
    topic = NewTopic(name, num_partitions=partitions, replication_factor=-1, config=dict(config or {}))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([topic]).values():
        made.result()


def read_partition(bootstrap: str, topic: str, partition: int = 0, **settings: Any) -> list[Stored]:
    """Every record of a partition, checksums verified, from the first to the end at the time of asking."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "check.crcs": True} | settings)
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=READ_S_MAX)
        consumer.assign([TopicPartition(topic, partition, low)])
        return read_until(consumer, topic, high)
    finally:
        consumer.close()


def read_until(consumer: Consumer, topic: str, end: int) -> list[Stored]:
    read: list[Stored] = []
    deadline = time.monotonic() + READ_S_MAX
    while consumer.position(consumer.assignment())[0].offset < end and not (read and read[-1].offset == end - 1):
        assert time.monotonic() < deadline, f"read {len(read)} records of {topic}, its end is {end}"
        for message in consumer.consume(1_000, timeout=0.2):
            read.append(stored(message))
    return read


def stored(message: Message) -> Stored:
    error = message.error()
    assert error is None, error
    headers = tuple((name, bytes(value)) for name, value in message.headers() or ())
    return Stored(message.offset(), message.key(), message.value(), headers, message.timestamp()[1])


def end_offset(bootstrap: str, topic: str, partition: int = 0) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=READ_S_MAX)[1])
    finally:
        consumer.close()


def write(bootstrap: str, topic: str, values: list[bytes], *, partition: int = 0, **settings: Any) -> None:
    """Write values, a batch each, and wait until all are acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "batch.num.messages": 1} | PATIENT | settings)
    failures: list[KafkaError] = []

    def heard(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    for value in values:
        producer.produce(topic, value, partition=partition, on_delivery=heard)
    assert producer.flush(READ_S_MAX) == 0
    assert not failures
