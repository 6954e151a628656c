"""What all clients of a workload share: where the cluster is, when to end, and which failures are certain."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Protocol

from confluent_kafka import KafkaError

from tests.faults.cluster.history import FAIL, OK, UNKNOWN, History

PLAIN, TXN, COPIED = "plain", "txn", "copied"
TOPICS = (PLAIN, TXN, COPIED)
GROUP, COPIERS = "group", "copiers"

# Anything else that a producer is told may have been written all the same, by an earlier try: also a message that was
# purged while it waited in the queue, for it may have waited there to be sent again.
CERTAIN = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError.TOPIC_EXCEPTION}

CLIENT = {
    "socket.timeout.ms": 10_000,
    "reconnect.backoff.max.ms": 500,
    "retry.backoff.ms": 100,
    "topic.metadata.refresh.interval.ms": 5_000,
    "log_level": 0,
}


class World:
    """The cluster as a process of clients knows it."""

    def __init__(
        self,
        reached: Mapping[str, str],
        addresses: Sequence[str],
        history: History,
        *,
        partitions: int = 3,
        sends_per_s: float = 100.0,
    ) -> None:
        self.reached = reached
        self.addresses = addresses
        self.history = history
        self.partitions = partitions
        self.sends_per_s = sends_per_s
        self.draining = threading.Event()
        self.stopping = threading.Event()

    def client(self, **settings: Any) -> dict[str, Any]:
        """Settings by their names with underscores; lower-case names of Kafka have none of their own but log_level."""
        return {**self.reached, **CLIENT, **{k.replace("_", "."): v for k, v in settings.items()}}


class Worker(Protocol):
    name: str

    def is_done(self) -> bool: ...

    def session(self) -> None:
        """The life of one client; returns, or raises KafkaException, when another has to take over."""


def outcome(error: KafkaError | None) -> str:
    if error is None:
        return OK
    return FAIL if error.code() in CERTAIN else UNKNOWN


class Pace:
    """So many turns in a second, and none made up for that were missed."""

    def __init__(self, per_s: float) -> None:
        self._step_s = 1 / per_s
        self._next_s = time.monotonic()

    def wait(self, ending: threading.Event) -> None:
        now_s = time.monotonic()
        self._next_s = max(self._next_s + self._step_s, now_s)
        ending.wait(self._next_s - now_s)


class Sessions:
    """Names of a worker's clients, one after the other: order is promised within each of them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._numbers = count(1)

    def next(self) -> str:
        return f"{self._name}.{next(self._numbers)}"
