"""Topics and where their partitions are, the ends of their logs, and records of some of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from moldau.client.cluster import Cluster, NoAnswer, Node, check, words_of
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.messages import MetadataResponse
from moldau.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from moldau.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

CONSUMER = -1  # as the id of a replica
END, START = -1, -2
FETCH_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Partition:
    place: TopicPartition
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    id: bytes
    is_internal: bool
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Of a cluster, as one broker tells it."""

    nodes: Mapping[int, Node]
    controller_id: int
    cluster_id: str | None
    topics: Mapping[str, Topic]
    named: frozenset[str] = frozenset()
    """All topics, also those that nothing more can be told of at the moment."""

    def by_leader(self, places: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Without those that nobody leads, or that are not there."""
        found: dict[int, list[TopicPartition]] = {}
        for place in places:
            leader = self.leader(place)
            if leader in self.nodes:
                found.setdefault(leader, []).append(place)
        return found

    def leader(self, place: TopicPartition) -> int:
        topic = self.topics.get(place.topic)
        inside = topic is not None and place.partition < len(topic.partitions)
        return topic.partitions[place.partition].leader if topic is not None and inside else -1


def layout(cluster: Cluster) -> Layout:
    found: MetadataResponse = cluster.metadata()
    check(found.error_code)
    nodes = {each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in found.brokers}
    topics = {
        topic.name: Topic(
            topic.name,
            topic.topic_id,
            topic.is_internal,
            tuple(
                Partition(
                    TopicPartition(topic.name, each.partition_index),
                    each.leader_id,
                    tuple(each.replica_nodes),
                    tuple(each.isr_nodes),
                )
                for each in sorted(topic.partitions, key=lambda each: each.partition_index)
            ),
        )
        for topic in found.topics
        if topic.name and topic.error_code == ErrorCode.NONE
    }
    named = frozenset(topic.name for topic in found.topics if topic.name)
    return Layout(nodes, found.controller_id, found.cluster_id, dict(sorted(topics.items())), named)


def offsets_at(
    cluster: Cluster, known: Layout, places: Iterable[TopicPartition], timestamp: int, problems: list[str]
) -> dict[TopicPartition, int]:
    """The first offset at or after a time, or `END` or `START`; without partitions that do not answer."""
    found: dict[TopicPartition, int] = {}
    for leader, theirs in known.by_leader(places).items():
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for place in theirs:
            topics.setdefault(place.topic, []).append(
                ListOffsetsPartition(partition_index=place.partition, timestamp=timestamp)
            )
        request = ListOffsetsRequest(
            replica_id=CONSUMER, topics=[ListOffsetsTopic(name, each) for name, each in topics.items()]
        )
        try:
            answer = cluster.ask_broker(leader, request, ListOffsetsResponse)
        except NoAnswer as wrong:
            problems.append(str(wrong))
            continue
        for topic in answer.topics:
            for each in topic.partitions:
                if each.error_code == ErrorCode.NONE:
                    found[TopicPartition(topic.name, each.partition_index)] = each.offset
                else:
                    problems.append(f"offsets of {topic.name}-{each.partition_index}: {words_of(each.error_code)}")
    return found


def fetched(
    cluster: Cluster,
    known: Layout,
    leader: int,
    offsets: Mapping[TopicPartition, int],
    *,
    partition_bytes: int,
    read_committed: bool = False,
) -> Iterator[tuple[TopicPartition, PartitionData]]:
    """What this broker has from these offsets on, without waiting for more; the first one gets a batch at least."""
    topics: dict[str, FetchTopic] = {}
    for place, offset in offsets.items():
        topic = topics.setdefault(place.topic, FetchTopic(place.topic, known.topics[place.topic].id, []))
        topic.partitions.append(
            FetchPartition(partition=place.partition, fetch_offset=offset, partition_max_bytes=partition_bytes)
        )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=FETCH_BYTES,
        isolation_level=int(read_committed),
        topics=[*topics.values()],
    )
    answer = cluster.ask_broker(leader, request, FetchResponse)
    check(answer.error_code)
    names = {topic.topic_id: name for name, topic in topics.items()}  # new versions have ids only
    for found in answer.responses:
        name = found.topic or names.get(found.topic_id, "")
        for each in found.partitions:
            place = TopicPartition(name, each.partition_index)
            if place in offsets:
                yield place, each
