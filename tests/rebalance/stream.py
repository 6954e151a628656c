"""A thread that keeps writing to every partition while members come and go."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.rebalance.ownership import Partition

PAUSE_S = 0.02
FLUSH_S_MAX = 30.0


class Stream:
    def __init__(self, bootstrap: str) -> None:
        self.partitions: list[Partition] = []
        self.ends: dict[Partition, int] = {}
        self.failures: list[KafkaError] = []
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "acks": "all"})
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def add(self, partitions: Iterable[Partition]) -> None:
        self.partitions = [*self.partitions, *partitions]

    def stop(self) -> dict[Partition, int]:
        """The end of every partition once all that was written is acknowledged."""
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(FLUSH_S_MAX) == 0
        assert not self.failures, self.failures[:3]
        return self.ends

    def _run(self) -> None:
        while not self._is_over.wait(PAUSE_S):
            try:
                for topic, index in self.partitions:
                    self._producer.produce(topic, b"x", partition=index, on_delivery=self._heard)
            except KafkaException as wrong:  # which would end this thread, and be seen by nobody
                self.failures.append(wrong.args[0])
            self._producer.poll(0)

    def _heard(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error)
            return
        key = message.topic(), message.partition()
        self.ends[key] = max(self.ends.get(key, 0), message.offset() + 1)
