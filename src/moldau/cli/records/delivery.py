"""What became of records that were sent, told as it becomes known."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError

from moldau.cli.failures import CommandFailed
from moldau.cli.librdkafka import Outage, topic_failure
from moldau.cli.output import close_quietly


class Delivery:
    """The first failure ends the sending."""

    def __init__(self, topic: str, outage: Outage, *, prints: bool) -> None:
        self.topic = topic
        self.prints = prints
        self.outage = outage
        self.failures = 0
        self.first_failure: KafkaError | None = None
        self.largest_bytes = 0

    @property
    def failed(self) -> bool:
        return self.first_failure is not None

    def on_delivery(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self.failures += 1
            self.first_failure = self.first_failure or error
            self.largest_bytes = max(self.largest_bytes, len(message))
            return
        self.outage.on_answer()
        if self.prints:
            place = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
            self._while_read(lambda: sys.stdout.write(json.dumps(place) + "\n"))

    def flush(self) -> None:
        self._while_read(sys.stdout.flush)

    def _while_read(self, tell: Callable[[], object]) -> None:
        """Whoever leaves, as `head` does, stops the reports, and no record."""
        try:
            tell()
        except BrokenPipeError:
            self.prints = False
            close_quietly()

    def check(self, *, undelivered: int) -> None:
        lost = self.failures + undelivered
        if lost:
            raise CommandFailed(f"{lost} records were not delivered: {self.cause()}")

    def cause(self) -> str:
        if self.first_failure is None:
            return "no broker answers"
        return delivery_failure(self.topic, self.first_failure, size_bytes=self.largest_bytes)


def delivery_failure(topic: str, error: KafkaError, *, size_bytes: int) -> str:
    if error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
        return topic_failure(topic, error)
    return (
        f"topic {topic!r}: Message size too large; the topic takes batches of up to its max.message.bytes, or else the"
        f" brokers' message.max.bytes; raise it with: moldau topics alter {topic} --config"
        f" max.message.bytes={max(size_bytes * 2, 1 << 20)}"
        " (a client's own limit is -X message.max.bytes=...)"
    )
