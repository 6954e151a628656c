"""A Kafka Streams application with `exactly_once_v2` counts words exactly through kills of the broker."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import moldau
from tests.clients.toolchains import streams_application
from tests.faults.clients import PATIENT, create_topic

pytestmark = pytest.mark.skipif(
    not (shutil.which("mvn") and shutil.which("javac")), reason="Kafka Streams needs a JDK, and Maven the first time"
)

COUNT_S_MAX = 120.0
LINES = 1_000
KILLS = 2
WORDS = [f"word-{number}" for number in range(20)]


class Tally:
    """What was said, and what a reader of committed records was told of it."""

    def __init__(self, bootstrap: str) -> None:
        self.said: Counter[str] = Counter()
        self.told: dict[str, int] = {}
        self.out_of_step: list[tuple[str, int]] = []
        self._chance = random.Random(1)
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **PATIENT})
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "reconnect.backoff.max.ms": 200,
            }
        )
        self._consumer.assign([TopicPartition("counts", 0, 0)])

    def say(self, lines: int) -> None:
        for _ in range(lines):
            words = self._chance.choices(WORDS, k=5)
            self.said.update(words)
            self._producer.produce("lines", " ".join(words).encode(), partition=0)
        assert self._producer.flush(COUNT_S_MAX) == 0

    def until_told(self) -> None:
        deadline_s = time.monotonic() + COUNT_S_MAX
        while self.told != self.said:
            assert time.monotonic() < deadline_s, (self.told, self.said)
            for message in self._consumer.consume(2_000, 0.2):
                if message.error() is None:
                    self._count(message.key().decode(), int(message.value()))

    def _count(self, word: str, count: int) -> None:
        if count != self.told.get(word, 0) + 1:
            self.out_of_step.append((word, count))
        self.told[word] = count

    def close(self) -> None:
        self._consumer.close()


@pytest.mark.timeout(600)
def test_words_are_counted_once_through_kills(tmp_path: Path) -> None:
    command = streams_application()
    broker = moldau.run(data_dir=tmp_path / "data")
    address = broker.bootstrap_servers
    for topic in ("lines", "counts"):
        create_topic(address, topic)
    tally = Tally(address)
    with (tmp_path / "application.txt").open("wb") as printed:
        application = subprocess.Popen(
            [*command, address, str(tmp_path / "state")], stdout=printed, stderr=subprocess.STDOUT
        )
    try:
        tally.say(LINES)
        tally.until_told()
        for _ in range(KILLS):
            tally.say(LINES)
            broker.kill()
            broker = moldau.run(data_dir=tmp_path / "data", port=broker.port)
            tally.say(LINES)
            tally.until_told()
        assert tally.out_of_step == []
    finally:
        tally.close()
        application.kill()
        application.wait()
        broker.stop()
