"""What the tool asks of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from moldau.cli.failures import CommandFailed
from moldau.cli.kafka.reassignment.documents import Assignment, Replica
from moldau.cli.wire import refusal
from moldau.client.cluster import Cluster, check
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from moldau.wire.messages.alter_partition_reassignments import ReassignablePartition, ReassignableTopic
from moldau.wire.messages.alter_replica_log_dirs import AlterReplicaLogDir, AlterReplicaLogDirTopic
from moldau.wire.messages.describe_log_dirs import DescribableLogDirTopic
from moldau.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from moldau.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
)

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET, DELETE = 0, 1

Ongoing = Mapping[TopicPartition, OngoingPartitionReassignment]
# Of a resource, by its type and name: what each key becomes, where None takes it away.
Changes = Mapping[tuple[int, str], Mapping[str, str | None]]


@dataclass(frozen=True, slots=True)
class LogDirs:
    """Where a replica is, and where it is on its way to."""

    current: str | None = None
    future: str | None = None


def by_topic(places: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in places:
        found.setdefault(topic, []).append(partition)
    return found


def replicas_of(client: Cluster, topics: Iterable[str], *, known_only: bool = False) -> Assignment:
    """Of all partitions of these topics."""
    found: Assignment = {}
    names = sorted(set(topics))
    for topic in client.metadata(names).topics if names else ():
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            if known_only:
                continue
            raise CommandFailed(f"Topic {topic.name} not found.")
        check(topic.error_code)
        for each in topic.partitions:
            found[TopicPartition(topic.name or "", each.partition_index)] = list(each.replica_nodes)
    return found


def ongoing(client: Cluster, places: Iterable[TopicPartition] | None = None) -> Ongoing:
    topics = None
    if places is not None:
        topics = [ListPartitionReassignmentsTopics(name, indexes) for name, indexes in by_topic(places).items()]
    answer = client.ask_controller(
        ListPartitionReassignmentsRequest(topics=topics),
        ListPartitionReassignmentsResponse,
        codes=lambda found: [found.error_code],
    )
    check(answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.name, each.partition_index): each for topic in answer.topics for each in topic.partitions
    }


def reassign(
    client: Cluster,
    wanted: Mapping[TopicPartition, Sequence[int] | None],
    *,
    factor_may_change: bool = True,
) -> dict[TopicPartition, str]:
    """What was wrong with each that failed; None for replicas ends what goes on."""
    topics = [
        ReassignableTopic(topic, [ReassignablePartition(each, _listed(wanted[TopicPartition(topic, each)]))
                                  for each in indexes])
        for topic, indexes in by_topic(wanted).items()
    ]  # fmt: skip
    request = AlterPartitionReassignmentsRequest(topics=topics, allow_replication_factor_change=factor_may_change)
    answer = client.ask_controller(request, AlterPartitionReassignmentsResponse, codes=lambda found: [found.error_code])
    check(answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.name, each.partition_index): refusal(each.error_code, each.error_message)
        for topic in answer.responses
        for each in topic.partitions
        if each.error_code != ErrorCode.NONE
    }


def _listed(replicas: Sequence[int] | None) -> list[int] | None:
    return None if replicas is None else [*replicas]


def log_dirs_of(client: Cluster, replicas: Iterable[Replica]) -> dict[Replica, LogDirs]:
    """Of those whose broker is there."""
    wanted = set(replicas)
    found: dict[Replica, LogDirs] = {}
    for broker_id in sorted({each.broker_id for each in wanted} & client.nodes().keys()):
        places = (TopicPartition(each.topic, each.partition) for each in sorted(wanted) if each.broker_id == broker_id)
        topics = [DescribableLogDirTopic(topic, indexes) for topic, indexes in by_topic(places).items()]
        answer = client.ask_broker(broker_id, DescribeLogDirsRequest(topics=topics), DescribeLogDirsResponse)
        check(answer.error_code)
        for directory in answer.results:
            for topic in directory.topics:
                for each in topic.partitions:
                    replica = Replica(broker_id, topic.name, each.partition_index)
                    known = found.get(replica, LogDirs())
                    found[replica] = (
                        LogDirs(known.current, directory.log_dir)
                        if each.is_future_key
                        else LogDirs(directory.log_dir, known.future)
                    )
    return found


def move_log_dirs(client: Cluster, wanted: Mapping[Replica, str]) -> list[Replica]:
    """Those whose move has begun; a replica that is not at its broker yet can be tried again."""
    begun: list[Replica] = []
    for broker_id in sorted({each.broker_id for each in wanted}):
        dirs: dict[str, list[TopicPartition]] = {}
        for replica, path in sorted(wanted.items()):
            if replica.broker_id == broker_id:
                dirs.setdefault(path, []).append(TopicPartition(replica.topic, replica.partition))
        rows = [
            AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(*each) for each in by_topic(places).items()])
            for path, places in dirs.items()
        ]
        answer = client.ask_broker(broker_id, AlterReplicaLogDirsRequest(dirs=rows), AlterReplicaLogDirsResponse)
        for topic in answer.results:
            for each in topic.partitions:
                replica = Replica(broker_id, topic.topic_name, each.partition_index)
                if each.error_code == ErrorCode.NONE:
                    begun.append(replica)
                elif each.error_code != ErrorCode.REPLICA_NOT_AVAILABLE:
                    raise CommandFailed(f"Failed to alter dir for {replica}: {refusal(each.error_code, None)}")
    return sorted(begun)


def change_configs(client: Cluster, changes: Changes) -> None:
    """A broker that is there hears of its own configuration itself, as Apache Kafka's clients do it."""
    brokers = client.nodes()
    groups: dict[int | None, list[AlterConfigsResource]] = {}
    for (kind, name), values in changes.items():
        configs = [AlterableConfig(key, DELETE if value is None else SET, value) for key, value in values.items()]
        broker_id = int(name) if kind == BROKER_RESOURCE and int(name) in brokers else None
        groups.setdefault(broker_id, []).append(AlterConfigsResource(kind, name, configs))
    for broker_id, resources in groups.items():
        request = IncrementalAlterConfigsRequest(resources=resources)
        answer = (
            client.ask(request, IncrementalAlterConfigsResponse)
            if broker_id is None
            else client.ask_broker(broker_id, request, IncrementalAlterConfigsResponse)
        )
        for each in answer.responses:
            check(each.error_code, each.error_message)
