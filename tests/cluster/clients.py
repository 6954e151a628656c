"""Real clients of a cluster."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

WAIT_S = 60.0


def producer(bootstrap: str, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0, **settings})


def produce(bootstrap: str, topic: str, values: Sequence[str], *, partition: int = -1) -> None:
    """All of them, or an AssertionError."""
    failures: list[KafkaError] = []
    sender = producer(bootstrap)

    def delivered(wrong: KafkaError | None, _: Message) -> None:
        if wrong is not None:
            failures.append(wrong)

    for value in values:
        sender.produce(topic, value, partition=partition, on_delivery=delivered)
    assert sender.flush(WAIT_S) == 0
    assert failures == []


def consumer(bootstrap: str, group: str, **settings: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **settings,
        }
    )


def read(reader: Consumer, count: int) -> list[Message]:
    """So many records, or fewer if they do not come in time."""
    found: list[Message] = []
    deadline_s = time.monotonic() + WAIT_S
    while len(found) < count and time.monotonic() < deadline_s:
        message = reader.poll(0.2)
        if message is not None and message.error() is None:
            found.append(message)
    return found


def committed(bootstrap: str, group: str, topic: str, partition: int = 0) -> int:
    """A group's offset; it is asked for again while its coordinator moves."""
    reader = consumer(bootstrap, group)
    deadline_s = time.monotonic() + WAIT_S
    try:
        while True:
            try:
                (found,) = reader.committed([TopicPartition(topic, partition)], timeout=10)
            except KafkaException:
                if time.monotonic() > deadline_s:
                    raise
            else:
                return int(found.offset)
    finally:
        reader.close()
