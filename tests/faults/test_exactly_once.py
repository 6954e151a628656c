"""Apache Kafka's TransactionalMessageCopier through kills of itself and of the broker: every message once, in order."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

import moldau
from moldau.embedded import EmbeddedBroker
from tests import apache_kafka
from tests.faults.clients import create_topic

pytestmark = pytest.mark.skipif(
    not apache_kafka.available(), reason="Apache Kafka needs java, and Maven the first time"
)

MESSAGES = 100_000
TRANSACTION_MESSAGES = 750
COPY_S_MAX = 200.0
KILLS_MAX = 6
SEED = 4


class Copier:
    """The tool in its own process; it is started again until everything is copied."""

    def __init__(self, bootstrap: str, output: Path) -> None:
        self._command = apache_kafka.java_command(
            "org.apache.kafka.tools.TransactionalMessageCopier",
            *("--broker-list", bootstrap, "--input-topic", "input", "--input-partition", "0"),
            *("--output-topic", "output", "--consumer-group", "copiers", "--transactional-id", "copier"),
            *("--transaction-size", str(TRANSACTION_MESSAGES), "--enable-random-aborts"),
            # It asks for its position, which waits for the offsets of whoever was killed, before it fences that one.
            *("--transaction-timeout", "5000"),
        )
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None

    def keep_running(self) -> None:
        if self._process is None or self._process.poll() is not None:
            with self._output.open("ab") as printed:
                self._process = subprocess.Popen(self._command, stdout=printed, stderr=subprocess.STDOUT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def reading_output(bootstrap: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "reconnect.backoff.max.ms": 200,
        }
    )
    consumer.assign([TopicPartition("output", 0, 0)])
    try:
        yield consumer
    finally:
        consumer.close()


def read(consumer: Consumer, seen: list[int]) -> bool:
    """Whether the end was reached."""
    messages = consumer.consume(5_000, 0.2)
    seen += [int(message.value()) for message in messages if message.error() is None]
    errors = [message.error() for message in messages if message.error() is not None]
    return any(error.code() == KafkaError._PARTITION_EOF for error in errors)


def fill(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(MESSAGES):
        producer.produce("input", b"%d" % number, partition=0)
        if number % 10_000 == 0:
            producer.flush()
    assert producer.flush() == 0


def copy(broker: EmbeddedBroker, folder: Path, reader: Consumer) -> tuple[list[int], EmbeddedBroker]:
    """What a reader saw while broker and copier were killed in turns; and the broker that runs at the end."""
    chance, kills, seen = random.Random(SEED), 0, list[int]()
    copier = Copier(broker.bootstrap_servers, folder / "copier.txt")
    deadline_s = time.monotonic() + COPY_S_MAX
    kill_s = time.monotonic() + 2.0
    try:
        while len(seen) < MESSAGES:
            assert time.monotonic() < deadline_s, (folder / "copier.txt").read_text()[-2_000:]
            copier.keep_running()
            read(reader, seen)
            if kills < KILLS_MAX and time.monotonic() > kill_s:
                kills += 1
                kill_s = time.monotonic() + chance.uniform(0.5, 2.0)
                if kills % 2:
                    broker.kill()
                    broker = moldau.run(data_dir=folder / "data", port=broker.port)
                else:
                    copier.kill()
    finally:
        copier.kill()
    return seen, broker


@pytest.mark.timeout(400)
def test_every_message_is_copied_once_through_kills(tmp_path: Path) -> None:
    broker = moldau.run(data_dir=tmp_path / "data")
    try:
        for topic in ("input", "output"):
            create_topic(broker.bootstrap_servers, topic)
        fill(broker.bootstrap_servers)
        with reading_output(broker.bootstrap_servers) as reader:
            seen, broker = copy(broker, tmp_path, reader)
        assert seen == list(range(MESSAGES))
        afterwards: list[int] = []
        with reading_output(broker.bootstrap_servers) as reader:
            while not read(reader, afterwards):
                pass
        assert afterwards == seen
    finally:
        broker.stop()
