"""kill -9 in the middle of producing: every acknowledged record is there afterwards, in order."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

import moldau
from moldau.embedded import EmbeddedBroker
from tests.apache_kafka import free_ports
from tests.faults.clients import PATIENT, Stored, create_topic, read_partition

TOPIC = "numbers"
PARTITIONS = 3
ACKNOWLEDGED_BETWEEN_KILLS = 300
WAIT_S_MAX = 60.0


class Stream:
    """A producer that sends numbers without pause, and remembers where the broker said it put each of them."""

    def __init__(self, bootstrap: str, settings: dict[str, Any]) -> None:
        self.producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1, "acks": "all"} | PATIENT | settings)
        self.acknowledged: dict[int, tuple[int, int]] = {}  # number: (partition, offset)
        self.failed: list[str] = []
        self.sent = 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                self.producer.produce(
                    TOPIC, b"%d" % self.sent, partition=self.sent % PARTITIONS, on_delivery=self.heard
                )
                self.sent += 1
            except BufferError:
                self.producer.poll(0.01)
            if self.sent % 20 == 0:
                self.producer.poll(0.002)

    def heard(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed.append(str(error))
            return
        value = message.value()
        assert value is not None
        self.acknowledged[int(value)] = (message.partition(), message.offset())

    def until_more_acknowledged(self, count: int) -> None:
        wanted, deadline = len(self.acknowledged) + count, time.monotonic() + WAIT_S_MAX
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < deadline, f"{len(self.acknowledged)} acknowledged of {wanted}; {self.failed[:3]}"
            time.sleep(0.005)

    def finish(self) -> None:
        self.stopping.set()
        self.thread.join()
        assert self.producer.flush(WAIT_S_MAX) == 0
        assert not self.failed


def killed_while_producing(
    data_dir: Path, *, kills: int, settings: dict[str, Any]
) -> tuple[Stream, list[list[Stored]]]:
    """What was acknowledged, and what each partition holds in the end."""
    (port,) = free_ports(1)
    broker = started(data_dir, port)
    try:
        create_topic(broker.bootstrap_servers, TOPIC, partitions=PARTITIONS, config={"segment.bytes": "1048576"})
        stream = Stream(broker.bootstrap_servers, settings)
        stream.thread.start()
        for _ in range(kills):
            stream.until_more_acknowledged(ACKNOWLEDGED_BETWEEN_KILLS)
            broker.kill()
            broker = started(data_dir, port)
        stream.until_more_acknowledged(ACKNOWLEDGED_BETWEEN_KILLS)
        stream.finish()
        return stream, [read_partition(broker.bootstrap_servers, TOPIC, partition) for partition in range(PARTITIONS)]
    finally:
        broker.kill()


def started(data_dir: Path, port: int) -> EmbeddedBroker:
    return moldau.run(data_dir=data_dir, port=port, overrides={"log.flush.offset.checkpoint.interval.ms": 200})


def numbers(records: list[Stored]) -> list[int]:
    return [int(record.value or b"") for record in records]


def assert_acknowledged_are_there(stream: Stream, partitions: list[list[Stored]]) -> None:
    at = {(index, one.offset): int(one.value or b"") for index, records in enumerate(partitions) for one in records}
    lost = {number: where for number, where in stream.acknowledged.items() if where[1] >= 0 and at.get(where) != number}
    assert not lost, f"{len(lost)} of {len(stream.acknowledged)} acknowledged records are not where they were: {lost}"


@pytest.mark.timeout(280)
def test_twenty_kills_with_an_idempotent_producer(tmp_path: Path) -> None:
    stream, partitions = killed_while_producing(tmp_path, kills=20, settings={"enable.idempotence": True})
    assert_acknowledged_are_there(stream, partitions)
    assert len(stream.acknowledged) == stream.sent
    for index, records in enumerate(partitions):
        assert numbers(records) == list(range(index, stream.sent, PARTITIONS)), "in order, once, all of them"


@pytest.mark.timeout(180)
def test_five_kills_with_a_plain_producer(tmp_path: Path) -> None:
    settings = {"enable.idempotence": False, "max.in.flight.requests.per.connection": 1}
    stream, partitions = killed_while_producing(tmp_path, kills=5, settings=settings)
    assert_acknowledged_are_there(stream, partitions)
    for index, records in enumerate(partitions):
        once = list(dict.fromkeys(numbers(records)))
        assert once == list(range(index, stream.sent, PARTITIONS)), "in order, at least once"


def test_a_topic_begins_with_nothing_of_another_that_had_its_name(tmp_path: Path) -> None:
    """Checkpoints are by name, and what they say of the start of a deleted topic is behind the end of the new one."""
    with moldau.run(data_dir=tmp_path) as broker:
        broker.create_topic(TOPIC, partitions=1)
        produce(broker, 500)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        (deleted,) = admin.delete_records([TopicPartition(TOPIC, 0, 500)]).values()
        assert deleted.result(WAIT_S_MAX).low_watermark == 500
        broker.restart()  # which leaves checkpoints
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.delete_topics([TOPIC])[TOPIC].result(WAIT_S_MAX)
        broker.create_topic(TOPIC, partitions=1)
        produce(broker, 100)
        broker.kill()
        broker.restart()
        assert [each.offset for each in read_partition(broker.bootstrap_servers, TOPIC, 0)] == [*range(100)]


def produce(broker: EmbeddedBroker, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(count):
        producer.produce(TOPIC, b"%d" % number)
    assert producer.flush(WAIT_S_MAX) == 0
