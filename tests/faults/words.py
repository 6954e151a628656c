"""Words that are said to a Kafka Streams application, and the counts that it tells."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.faults.clients import PATIENT

COUNT_S_MAX = 120.0
WORDS = [f"word-{number}" for number in range(20)]
LINES, COUNTS = "lines", "counts"


class Tally:
    """What was said, and what a reader of committed records was told of it."""

    def __init__(self, bootstrap: str, *, partitions: int = 1, security: Mapping[str, Any] | None = None) -> None:
        self.said: Counter[str] = Counter()
        self.told: dict[str, int] = {}
        self.out_of_step: list[tuple[str, int]] = []
        self._partitions = partitions
        self._chance = random.Random(1)
        client = {"bootstrap.servers": bootstrap, "log_level": 0, **(security or {})}
        self._producer = Producer({**client, "enable.idempotence": True, **PATIENT})
        reading = {"group.id": "reader", "isolation.level": "read_committed", "reconnect.backoff.max.ms": 200}
        self._consumer = Consumer({**client, **reading})
        self._consumer.assign([TopicPartition(COUNTS, 0, 0)])

    def say(self, lines: int) -> None:
        for number in range(lines):
            words = self._chance.choices(WORDS, k=5)
            self.said.update(words)
            self._producer.produce(LINES, " ".join(words).encode(), partition=number % self._partitions)
        assert self._producer.flush(COUNT_S_MAX) == 0

    def until_told(self, *, timeout_s: float = COUNT_S_MAX) -> None:
        deadline_s = time.monotonic() + timeout_s
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
