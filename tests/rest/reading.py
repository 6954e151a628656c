"""What is in a topic, as confluent-kafka reads it: the other side of what the proxy wrote."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer

from tests.rest.proxies import WAIT_S_MAX


def records(bootstrap: str, topic: str, count: int) -> list[Any]:
    """By partition and offset."""
    config = {"bootstrap.servers": bootstrap, "group.id": str(uuid4()), "auto.offset.reset": "earliest"}
    consumer = Consumer({**config, "enable.auto.commit": False})
    consumer.subscribe([topic])
    found: list[Any] = []
    deadline_s = time.monotonic() + WAIT_S_MAX
    try:
        while len(found) < count:
            assert time.monotonic() < deadline_s, f"{len(found)} of {count} records"
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                found.append(message)
    finally:
        consumer.close()
    return sorted(found, key=lambda each: (each.partition(), each.offset()))
