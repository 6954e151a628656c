"""What `--describe` prints of topics: one line for each, and one for each of its partitions."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from moldau.cli.failures import CommandFailed, UsageError
from moldau.cli.kafka.java import hash_order, text_hash
from moldau.cli.kafka.topics.matching import existing
from moldau.cli.topics.configs import Kind, Source, described
from moldau.client.cluster import Cluster, Refused, check
from moldau.client.connection import Unsupported
from moldau.core.ids import ZERO_UUID, TopicPartition, format_uuid, parse_uuid
from moldau.wire.messages import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from moldau.wire.messages.describe_configs import DescribeConfigsResourceResult
from moldau.wire.messages.describe_topic_partitions import Cursor, TopicRequest
from moldau.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
)
from moldau.wire.messages.metadata import MetadataResponseTopic

MIN_ISR = "min.insync.replicas"
PARTITIONS_IN_ANSWER = 2000
Reassignments = Mapping[TopicPartition, OngoingPartitionReassignment]


@dataclass(frozen=True, slots=True)
class Partition:
    number: int
    leader: int | None
    replicas: Sequence[int]
    isr: Sequence[int]
    elr: Sequence[int] | None = None
    last_known_elr: Sequence[int] | None = None

    def replication_factor(self, moving: OngoingPartitionReassignment | None) -> int:
        """Without the replicas that a reassignment is adding."""
        if moving is None or not {*moving.adding_replicas, *moving.removing_replicas}.intersection(self.replicas):
            return len(self.replicas)
        return len(moving.replicas) - len(moving.adding_replicas)


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    id: bytes
    partitions: Sequence[Partition]


def describe_topics(cluster: Cluster, options: Namespace) -> None:
    topics = found_topics(cluster, options)
    configs = {}
    for name, each in described(cluster, Kind.TOPIC, [topic.name for topic in topics]).items():
        check(each.error_code, each.error_message)
        configs[name] = each.configs
    live = cluster.nodes()
    moving = reassignments(cluster, topics)
    for topic in topics:
        for line in lines(topic, configs[topic.name], moving, set(live), options):
            print(line)


def lines(
    topic: Topic,
    configs: Sequence[DescribeConfigsResourceResult],
    moving: Reassignments,
    live: set[int],
    options: Namespace,
) -> Iterator[str]:
    own = [each for each in configs if each.config_source != Source.DEFAULT_CONFIG]
    is_report = bool(
        options.unavailable_partitions
        or options.under_replicated_partitions
        or options.under_min_isr_partitions
        or options.at_min_isr_partitions
    )
    if not is_report and (own or not options.topics_with_overrides):
        yield topic_line(topic, configs, moving)
    if options.topics_with_overrides:
        return
    min_isr = next((int(each.value or 1) for each in configs if each.name == MIN_ISR), 1)
    for partition in topic.partitions:
        ongoing = moving.get(TopicPartition(topic.name, partition.number))
        if not is_report or is_reported(partition, ongoing, min_isr, live, options):
            yield partition_line(topic.name, partition, ongoing)


def is_reported(
    partition: Partition,
    moving: OngoingPartitionReassignment | None,
    min_isr: int,
    live: set[int],
    options: Namespace,
) -> bool:
    has_leader = partition.leader is not None
    return bool(
        (options.under_replicated_partitions and partition.replication_factor(moving) > len(partition.isr))
        or (options.unavailable_partitions and not (has_leader and partition.leader in live))
        or (options.under_min_isr_partitions and (not has_leader or len(partition.isr) < min_isr))
        or (options.at_min_isr_partitions and len(partition.isr) == min_isr)
    )


def topic_line(topic: Topic, configs: Sequence[DescribeConfigsResourceResult], moving: Reassignments) -> str:
    values = {each.name: each for each in configs}
    shown = ",".join(
        f"{name}={values[name].value}"
        for name in hash_order(values, text_hash)
        if values[name].config_source != Source.DEFAULT_CONFIG
    )
    first = topic.partitions[0]
    factor = first.replication_factor(moving.get(TopicPartition(topic.name, first.number)))
    topic_id = "" if topic.id == ZERO_UUID else f"\tTopicId: {format_uuid(topic.id)}"
    return (
        f"Topic: {topic.name}{topic_id}\tPartitionCount: {len(topic.partitions)}\tReplicationFactor: {factor}"
        f"\tConfigs: {shown}"
    )


def partition_line(name: str, partition: Partition, moving: OngoingPartitionReassignment | None) -> str:
    leader = "none" if partition.leader is None else partition.leader
    cells = [
        f"Topic: {name}",
        f"Partition: {partition.number}",
        f"Leader: {leader}",
        f"Replicas: {ids(partition.replicas)}",
        f"Isr: {ids(partition.isr)}",
    ]
    if moving is not None:
        cells += [
            f"Adding Replicas: {ids(moving.adding_replicas)}",
            f"Removing Replicas: {ids(moving.removing_replicas)}",
        ]
    cells += [f"Elr: {ids(partition.elr)}", f"LastKnownElr: {ids(partition.last_known_elr)}"]
    return "".join(f"\t{cell}" for cell in cells)


def ids(brokers: Sequence[int] | None) -> str:
    return "N/A" if brokers is None else ",".join(map(str, brokers))


def found_topics(cluster: Cluster, options: Namespace) -> list[Topic]:
    """In the order of Apache Kafka's tool."""
    try:
        wanted = parse_uuid(options.topic_id) if options.topic_id is not None else ZERO_UUID
    except ValueError as wrong:
        raise UsageError(f"--topic-id: {wrong}") from None
    if wanted != ZERO_UUID:
        known = [each for each in cluster.metadata().topics if each.topic_id == wanted]
        if not known and not options.if_exists:
            raise CommandFailed(f"TopicId '{options.topic_id}' does not exist as expected")
        return [of_metadata(each) for each in known]
    names = existing(cluster, options)
    topics = asked_in_pages(cluster, names, options.partition_size_limit_per_response or PARTITIONS_IN_ANSWER)
    return [topics[name] for name in hash_order(names, text_hash, sized=True)]


def asked_in_pages(cluster: Cluster, names: Sequence[str], limit: int) -> dict[str, Topic]:
    if not names:
        return {}
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name) for name in sorted(names)], response_partition_limit=limit
    )
    ids_of: dict[str, bytes] = {}
    partitions: dict[str, list[Partition]] = {}
    while True:
        try:
            page = cluster.ask(request, DescribeTopicPartitionsResponse)
        except Unsupported:
            return {each.name or "": of_metadata(each) for each in cluster.metadata(names).topics}
        for topic in page.topics:
            check(topic.error_code)
            name = topic.name or ""
            ids_of[name] = topic.topic_id
            partitions.setdefault(name, []).extend(
                Partition(
                    each.partition_index,
                    led_by(each.leader_id),
                    each.replica_nodes,
                    each.isr_nodes,
                    each.eligible_leader_replicas,
                    each.last_known_elr,
                )
                for each in topic.partitions
            )
        if page.next_cursor is None:
            return {name: Topic(name, ids_of[name], some) for name, some in partitions.items()}
        at = Cursor(page.next_cursor.topic_name, page.next_cursor.partition_index)
        request.topics = [each for each in request.topics if each.name >= at.topic_name]
        request.cursor = at


def led_by(broker: int) -> int | None:
    return None if broker < 0 else broker


def of_metadata(topic: MetadataResponseTopic) -> Topic:
    check(topic.error_code)
    partitions = [
        Partition(each.partition_index, led_by(each.leader_id), each.replica_nodes, each.isr_nodes)
        for each in sorted(topic.partitions, key=lambda each: each.partition_index)
    ]
    return Topic(topic.name or "", topic.topic_id, partitions)


def reassignments(cluster: Cluster, topics: Sequence[Topic]) -> Reassignments:
    """None where the cluster does not tell: they are an addition to what is asked for."""
    if not topics:
        return {}
    asked = [ListPartitionReassignmentsTopics(each.name, [one.number for one in each.partitions]) for each in topics]
    try:
        answer = cluster.ask_controller(
            ListPartitionReassignmentsRequest(topics=asked),
            ListPartitionReassignmentsResponse,
            codes=lambda found: [found.error_code],
        )
        check(answer.error_code, answer.error_message)
    except (Unsupported, Refused):
        return {}
    return {
        TopicPartition(topic.name, each.partition_index): each for topic in answer.topics for each in topic.partitions
    }
