"""Clients at work while something is done to a cluster, of whom none may notice it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer

WAIT_S_MAX = 60.0


class Load:
    """A producer and a group's member that work until they are told to end; whatever goes wrong is kept."""

    def __init__(
        self,
        client: dict[str, Any],
        topic: str,
        group: str,
        *,
        is_harmless: Callable[[KafkaError], bool] = lambda _: False,
    ) -> None:
        """`is_harmless` says what librdkafka may tell of that is no request's failure."""
        self.wrong: list[KafkaError] = []
        self.sent = 0
        self.acknowledged: set[bytes] = set()
        self.read: list[bytes] = []
        self._client = {**client, "error_cb": self._told, "log_level": 0}
        self._topic, self._group, self._is_harmless = topic, group, is_harmless
        self._is_ending = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._produce, self._consume)]

    def _told(self, error: KafkaError) -> None:
        if not self._is_harmless(error):
            self.wrong.append(error)

    def _produce(self) -> None:
        producer = Producer({**self._client, "enable.idempotence": True, "linger.ms": 1})
        while not self._is_ending.is_set():
            self.sent += 1
            producer.produce(self._topic, str(self.sent).encode(), on_delivery=self._delivered)
            producer.poll(0.005)
        assert producer.flush(WAIT_S_MAX) == 0

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self.wrong.append(error)
        else:
            self.acknowledged.add(message.value())

    def _consume(self) -> None:
        consumer = Consumer({**self._client, "group.id": self._group, "auto.offset.reset": "earliest"})
        consumer.subscribe([self._topic])
        while not (self._is_ending.is_set() and len(self.read) >= self.sent):
            for message in consumer.consume(1_000, 0.2):
                if message.error() is not None:
                    self.wrong.append(message.error())
                else:
                    self.read.append(message.value())
            if self.wrong:
                break
        consumer.close()

    @contextmanager
    def running(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self.end()

    def end(self) -> None:
        """What was sent is read before."""
        self._is_ending.set()
        for thread in self._threads:
            thread.join(WAIT_S_MAX)
