"""What is known of a cluster at a moment; None where nobody told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from moldau.core.ids import NO_LEADER, TopicPartition

RETENTION_MS, RETENTION_BYTES, SEGMENT_MS, SEGMENT_BYTES = (
    "retention.ms", "retention.bytes", "segment.ms", "segment.bytes",
)  # fmt: skip
MIN_IN_SYNC, UNCLEAN, CLEANUP, TIMESTAMP_TYPE = (
    "min.insync.replicas", "unclean.leader.election.enable", "cleanup.policy", "message.timestamp.type",
)  # fmt: skip
TOPIC_KEYS = (
    RETENTION_MS, RETENTION_BYTES, SEGMENT_MS, SEGMENT_BYTES, MIN_IN_SYNC, UNCLEAN, CLEANUP, TIMESTAMP_TYPE,
)  # fmt: skip
DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Broker:
    id: int
    host: str
    port: int
    rack: str | None = None
    failure: str | None = None
    """Why it could not be reached at the address that it advertises."""
    round_trip_ms: float | None = None
    controller_id: int | None = None
    """Whom it takes for the controller."""
    supported: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    finalized: Mapping[str, int] = field(default_factory=dict)
    apis: frozenset[tuple[int, int, int]] = frozenset()
    """Key, oldest and newest version of what it answers."""

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Partition:
    place: TopicPartition
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...] = ()
    start: int | None = None
    end: int | None = None
    size_bytes: int | None = None
    """Of the leader's replica."""
    bytes_per_s: float | None = None
    """What was written to it in the last day; None where it is too young to tell, or empty."""
    newest_ms: int | None = None
    """The greatest timestamp of a record."""

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER

    @property
    def is_under_replicated(self) -> bool:
        return len(self.in_sync) < len(self.replicas)


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    is_internal: bool
    partitions: tuple[Partition, ...]
    configs: Mapping[str, str] = field(default_factory=dict)

    @property
    def replication_factor(self) -> int:
        return min((len(each.replicas) for each in self.partitions), default=0)

    @property
    def deletes(self) -> bool:
        """Old records are deleted; those of a topic that is only compacted are not."""
        return DELETE in self.configs.get(CLEANUP, DELETE).split(",")

    def number(self, key: str) -> int | None:
        """Of a configuration; None where nobody told it."""
        text = self.configs.get(key, "")
        return int(text) if text.removeprefix("-").isdecimal() else None


@dataclass(frozen=True, slots=True)
class LogDirectory:
    broker: int
    path: str
    error: str | None = None
    total_bytes: int | None = None
    usable_bytes: int | None = None
    replicas: Mapping[TopicPartition, int] = field(default_factory=dict)
    """How much each takes."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Where a group goes on reading, and when the record there was written."""

    group: str
    place: TopicPartition
    offset: int
    written_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    state: str
    members: int
    lag: int | None = None
    rebalancing_ms: int | None = None
    """For how long it was seen in one and the same rebalance."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    now_ms: int
    servers: str
    brokers: Mapping[int, Broker]
    topics: Mapping[str, Topic] = field(default_factory=dict)
    directories: tuple[LogDirectory, ...] = ()
    groups: tuple[Group, ...] = ()
    unread: tuple[Unread, ...] = ()
    moving: frozenset[TopicPartition] = frozenset()
    """Partitions that a reassignment is giving other replicas."""
    quorum_leader: int | None = None
    """The active controller as DescribeQuorum tells it; -1 for none."""
    unasked: Mapping[str, str] = field(default_factory=dict)
    """What could not be asked, and why."""

    def partitions(self) -> Iterator[Partition]:
        for topic in self.topics.values():
            yield from topic.partitions

    def partition(self, place: TopicPartition) -> Partition | None:
        topic = self.topics.get(place.topic)
        return next((each for each in topic.partitions if each.place == place), None) if topic else None

    @property
    def replica_ids(self) -> set[int]:
        return {replica for each in self.partitions() for replica in each.replicas}
