"""How each broker describes a topic and the cluster, asked so often that an election can be timed by it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from moldau.client.cluster import Cluster, NoAnswer
from moldau.client.connection import Unsupported

PAUSE_S = 0.005  # between two questions to one broker
PAUSE_AWAY_S = 0.05  # while it does not answer


@dataclass(frozen=True, slots=True)
class Partition:
    leader: int
    replicas: tuple[int, ...]
    isr: frozenset[int]


@dataclass(frozen=True, slots=True)
class View:
    """`at_s` is when it was first seen; `partitions` are empty while the broker does not know the topic."""

    at_s: float
    broker: int
    brokers: frozenset[int]
    partitions: Mapping[int, Partition]

    def is_like(self, other: View | None) -> bool:
        return other is not None and (self.brokers, self.partitions) == (other.brokers, other.partitions)

    @property
    def is_in_sync(self) -> bool:
        return bool(self.partitions) and all(
            each.leader >= 0 and set(each.replicas) == each.isr for each in self.partitions.values()
        )


class Watch:
    """Views of one topic, by a thread and a connection for each broker. Whoever opens it closes it."""

    def __init__(self, topic: str, brokers: Sequence[int], connect: Callable[[int], Cluster]) -> None:
        self.views: list[View] = []
        """What changed, in the order in which it was seen."""
        self.latest: dict[int, View | None] = dict.fromkeys(brokers)
        """None for a broker that does not answer."""
        self.answered_s: dict[int, float] = {}
        self._topic = topic
        self._connect = connect
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._look, args=[each], daemon=True) for each in brokers]
        for each in self._threads:
            each.start()

    def close(self) -> None:
        self._is_over.set()

    def first(self, is_so: Callable[[View], bool], *, since_s: float) -> View | None:
        with self._lock:
            views = [each for each in self.views if each.at_s >= since_s]
        return next(filter(is_so, views), None)

    def _look(self, broker: int) -> None:
        with self._connect(broker) as client:
            while not self._is_over.is_set():
                try:
                    found = self._seen(client, broker)
                except (NoAnswer, Unsupported):
                    self.latest[broker] = None
                    self._is_over.wait(PAUSE_AWAY_S)
                    continue
                self.answered_s[broker] = found.at_s
                if not found.is_like(self.latest[broker]):
                    with self._lock:
                        self.views.append(found)
                    self.latest[broker] = found
                self._is_over.wait(PAUSE_S)

    def _seen(self, client: Cluster, broker: int) -> View:
        answer = client.metadata([self._topic])
        partitions = {
            each.partition_index: Partition(each.leader_id, tuple(each.replica_nodes), frozenset(each.isr_nodes))
            for topic in answer.topics
            for each in topic.partitions
        }
        return View(time.monotonic(), broker, frozenset(each.node_id for each in answer.brokers), partitions)
