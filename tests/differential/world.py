"""One broker under comparison: what a scenario asks of it, and the transcript of normalised answers."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.differential import batches
from tests.differential.peer import Answer, Peer

SETTLE_S = 20.0

Step = tuple[str, Any]
# The time of every record we send, the same for both brokers: young enough to be kept.
NOW_MS = int(time.time() * 1000) - 60_000

# What two runs of Apache Kafka itself give differently, and the name that stands for it once it is not a constant.
NAMED_BY_APPEARANCE = {
    "producer_id": "producer",
    "session_id": "session",
    "cluster_id": "cluster",
    "member_id": "member",
    "leader": "member",
}
NAMES_NOTHING = {
    "producer_id": (-1,),
    "session_id": (0,),
    "cluster_id": (None, ""),
    "member_id": ("", None),
    "leader": ("",),
}
MOMENTS = {
    "log_append_time_ms",
    "base_timestamp",
    "max_timestamp",
    "timestamp",
    "last_timestamp",
    "transaction_start_time_ms",
}
# A moment in here was read from a broker's clock and not sent by us.
CLOCK_MS = range(NOW_MS + 50_000, NOW_MS + 3_000_000)
BOUNDS = re.compile(r"within \[-?\d+, -?\d+\]")  # of timestamps, which are reckoned from the broker's clock
UNORDERED = {
    "topics": "name",
    "partitions": "partition_index",
    "configs": "name",
    "config_resources": "resource_name",
    "synonyms": None,
    "api_keys": "api_key",
    "results": "resource_name group_id",
    "active_producers": "producer_id",
    "members": "metadata",
    "groups": "group_id",
    "results_by_topic_v3_and_below": "name",
    "topic_results": "name",
    "results_by_partition": "partition_index",
}


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    id: bytes


@dataclass(slots=True)
class World:
    """Scenarios talk to this and to nothing else, so that the same function runs against any broker."""

    address: tuple[str, int]
    name: str
    transcript: list[Step] = field(default_factory=list)
    aliases: dict[Any, str] = field(default_factory=dict)
    peer: Peer = field(init=False)
    extra_peers: list[Peer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.peer = Peer(self.address)

    def close(self) -> None:
        for peer in (self.peer, *self.extra_peers):
            peer.close()

    def extra_peer(self) -> Peer:
        """A connection of its own, for a step that may break it."""
        self.extra_peers.append(Peer(self.address))
        return self.extra_peers[-1]

    def ask(self, api: str, version: int, note: str = "", /, **fields: Any) -> Any:
        """Send a request and put its answer into the transcript; the plain answer is for the scenario's next step."""
        answer = self.quietly(api, version, **fields)
        self.note(f"{api} v{version} {note}".strip(), answer)
        return answer

    def ask_bytes(self, api: str, version: int, note: str, body: bytes) -> None:
        """Send a body that no encoder would write."""
        self.peer.send_request(api, version, body)
        answer = self.peer.answer(api, version)
        if isinstance(answer, str):
            self.peer.reconnect()
        self.note(f"{api} v{version} {note}", answer)

    def quietly(self, api: str, version: int, /, **fields: Any) -> Any:
        answer: Answer = self.peer.ask(api, version, **fields)
        if isinstance(answer, str):
            self.peer.reconnect()
        return answer

    def note(self, what: str, value: Any) -> None:
        self.transcript.append((what, self.normalise(value)))

    def topic(self, suffix: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> Topic:
        """A topic of this scenario's own, led and ready."""
        name = f"{self.name}-{suffix}"
        wanted = {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": 1,
            "configs": [{"name": key, "value": value} for key, value in (configs or {}).items()],
        }
        made = self.quietly("CreateTopics", 7, topics=[wanted], timeout_ms=15_000)
        assert made["topics"][0]["error_code"] == 0, made
        self.until_ready(name, partitions)
        topic = Topic(name, made["topics"][0]["topic_id"])
        self.id_alias(topic.id)
        return topic

    def until_ready(self, topic: str, partitions: int) -> None:
        """Metadata knows a new topic sooner than its partitions answer, so it is they who are asked."""
        wanted = [{"partition_index": index, "timestamp": -1} for index in range(partitions)]

        def ready() -> bool:
            answer = self.quietly("ListOffsets", 7, topics=[{"name": topic, "partitions": wanted}])
            return all(one["error_code"] == 0 for one in answer["topics"][0]["partitions"])

        self.until(ready, f"{topic} to be led")

    def until_gone(self, topic: str) -> None:
        def gone() -> bool:
            described = self.quietly("Metadata", 12, topics=[{"name": topic}], allow_auto_topic_creation=False)
            return bool(described["topics"][0]["error_code"])

        self.until(gone, f"{topic} to be gone")

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + SETTLE_S
        while not condition():
            assert time.monotonic() < deadline, f"waited {SETTLE_S} s for {what}"
            time.sleep(0.02)

    def fill(self, topic: Topic, *record_sets: bytes, partition: int = 0) -> None:
        """Put record sets into a partition, one request each, without a line in the transcript."""
        for records in record_sets:
            data = [{"name": topic.name, "partition_data": [{"index": partition, "records": records}]}]
            answer = self.quietly("Produce", 9, acks=-1, timeout_ms=5_000, topic_data=data)
            assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0, answer

    def normalise(self, value: Any, key: str = "") -> Any:
        if key == "records":
            return value if isinstance(value, str) else [self.normalise(one) for one in batches.describe(value)]
        if key == "responses" and isinstance(value, list) and value and is_fetched(value[0]):
            value = self.flat(value)
        if isinstance(value, dict):
            return {name: self.normalise(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [self.normalise(one, key) for one in in_order(value, key)]
        if isinstance(value, bytes):
            return self.id_alias(value) if len(value) == 16 and any(value) else value.hex()
        return self.scalar(value, key)

    def flat(self, topics: list[Any]) -> list[Any]:
        """The partitions of a Fetch answer by topic and index: their order, and how they are grouped, mean nothing."""
        named = [
            {"topic": topic["topic"] if "topic" in topic else self.normalise(topic["topic_id"])} | partition
            for topic in topics
            for partition in topic["partitions"]
        ]
        return sorted(named, key=lambda one: (one["topic"], one["partition_index"]))

    def scalar(self, value: Any, key: str) -> Any:
        if key in NAMED_BY_APPEARANCE and value not in NAMES_NOTHING[key]:
            return self.alias(NAMED_BY_APPEARANCE[key], value)
        if key in MOMENTS and value in CLOCK_MS:
            return "<moment>"
        if key == "port" and value == self.address[1]:
            return "own port"
        if isinstance(value, str):
            return self.text(value)
        return value

    def text(self, value: str) -> str:
        for known, alias in self.aliases.items():
            if isinstance(known, str):
                value = value.replace(known, alias)
        return BOUNDS.sub("within <bounds>", value)

    def id_alias(self, value: bytes) -> str:
        alias = self.alias("uuid", value)
        self.aliases[base64.urlsafe_b64encode(value).decode().rstrip("=")] = alias  # as it is written in messages
        return alias

    def alias(self, kind: str, value: Any) -> str:
        """A name for a value that each broker chooses for itself, by its order of appearance in this scenario."""
        if value not in self.aliases:
            self.aliases[value] = f"<{kind} {sum(one.startswith(f'<{kind} ') for one in self.aliases.values()) + 1}>"
        return self.aliases[value]


def is_fetched(row: Any) -> bool:
    return "partitions" in row and ("topic" in row or "topic_id" in row)


def in_order(values: list[Any], key: str) -> Iterator[Any]:
    for by in (UNORDERED.get(key) or "").split():
        if values and isinstance(values[0], dict) and by in values[0]:
            yield from sorted(values, key=lambda one: str(one[by]))
            return
    yield from values
