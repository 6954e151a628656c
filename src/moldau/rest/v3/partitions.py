"""Partitions of topics: leaders, replicas, offsets, and where they are on their way to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from starlette.responses import Response

from moldau.client.cluster import Cluster, check
from moldau.client.listing import EARLIEST, LATEST, list_offsets
from moldau.core.ids import TopicPartition
from moldau.rest.calls import Call, Json, answer
from moldau.rest.problems import not_found
from moldau.rest.v3.clusters import broker_of
from moldau.rest.v3.resources import Resources, resources_of
from moldau.rest.v3.topics import described, topics_of
from moldau.wire.messages import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse
from moldau.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
)
from moldau.wire.messages.metadata import MetadataResponsePartition

Moving = list[tuple[str, OngoingPartitionReassignment]]


async def list_partitions(call: Call) -> Response:
    found, name = await resources_of(call), call.name("topic_name")
    topic = await call.session.ask(lambda cluster: described(cluster, name))
    data = [_partition(found, name, each) for each in _in_order(topic.partitions)]
    return answer(found.collection("KafkaPartitionList", ("topics", name, "partitions"), data))


async def get_partition(call: Call) -> Response:
    found = await resources_of(call)
    return answer(_partition(found, call.name("topic_name"), await partition_of(call)))


async def partition_of(call: Call) -> MetadataResponsePartition:
    """The one that the path names. 404 if there is none of that number."""
    name, number = call.name("topic_name"), call.number("partition_id")
    topic = await call.session.ask(lambda cluster: described(cluster, name))
    found = next((each for each in topic.partitions if each.partition_index == number), None)
    if found is None:
        raise not_found("Partition", number)
    return found


def _in_order(partitions: Iterable[MetadataResponsePartition]) -> list[MetadataResponsePartition]:
    return sorted(partitions, key=lambda each: each.partition_index)


def _partition(found: Resources, topic: str, partition: MetadataResponsePartition) -> Json:
    number, leader = partition.partition_index, partition.leader_id
    path = ("topics", topic, "partitions", number)
    led = {} if leader < 0 else {"leader": found.link(*path, "replicas", leader)}
    return {
        **found.resource(
            "KafkaPartition", path, ("topic", topic, "partition", number), topic_name=topic, partition_id=number
        ),
        **led,
        "replicas": found.link(*path, "replicas"),
        "reassignment": found.link(*path, "reassignment"),
    }


async def get_offsets(call: Call) -> Response:
    found, name = await resources_of(call), call.name("topic_name")
    number = (await partition_of(call)).partition_index
    place = TopicPartition(name, number)
    first, end = await call.session.ask(lambda cluster: offsets_of(cluster, place))
    return answer(
        found.resource(
            "KafkaPartition",
            ("topics", name, "partitions", number, "offset"),
            ("topic", name, "partition", number, "offset"),
            topic_name=name,
            partition_id=number,
            earliest_offset=first,
            latest_offset=end,
        )
    )


def offsets_of(cluster: Cluster, place: TopicPartition) -> tuple[int, int]:
    """Raises Refused."""
    return list_offsets(cluster, {place: EARLIEST})[place], list_offsets(cluster, {place: LATEST})[place]


async def list_replicas(call: Call) -> Response:
    found, name = await resources_of(call), call.name("topic_name")
    partition = await partition_of(call)
    path = ("topics", name, "partitions", partition.partition_index, "replicas")
    data = [_replica(found, name, partition, each) for each in partition.replica_nodes]
    return answer(found.collection("KafkaReplicaList", path, data))


async def get_replica(call: Call) -> Response:
    found, name, broker = await resources_of(call), call.name("topic_name"), call.number("broker_id")
    partition = await partition_of(call)
    if broker not in partition.replica_nodes:
        raise not_found("Replica", broker)
    return answer(_replica(found, name, partition, broker))


async def list_replicas_of_broker(call: Call) -> Response:
    found, broker = await resources_of(call), (await broker_of(call)).id
    topics = topics_of(await call.session.ask(lambda cluster: cluster.metadata()))

    def data() -> Iterator[Json]:
        for topic in topics:
            for each in _in_order(topic.partitions):
                if broker in each.replica_nodes:
                    yield _replica(found, topic.name or "", each, broker)

    return await found.listed("KafkaReplicaList", ("brokers", broker, "partition-replicas"), data)


def _replica(found: Resources, topic: str, partition: MetadataResponsePartition, broker: int) -> Json:
    number = partition.partition_index
    return found.resource(
        "KafkaReplica",
        ("topics", topic, "partitions", number, "replicas", broker),
        ("topic", topic, "partition", number, "replica", broker),
        topic_name=topic,
        partition_id=number,
        broker_id=broker,
        is_leader=partition.leader_id == broker,
        is_in_sync=broker in partition.isr_nodes,
        broker=found.link("brokers", broker),
    )


async def list_all_reassignments(call: Call) -> Response:
    found = await resources_of(call)
    moving = await call.session.ask(lambda cluster: _reassignments(cluster, None))
    path = ("topics", "-", "partitions", "-", "reassignment")
    return answer(found.collection("KafkaReassignmentList", path, [_reassignment(found, *each) for each in moving]))


async def list_reassignments(call: Call) -> Response:
    found, name = await resources_of(call), call.name("topic_name")
    moving = await call.session.ask(lambda cluster: _of_topic(cluster, name))
    path = ("topics", name, "partitions", "-", "reassignment")
    return answer(found.collection("KafkaReassignmentList", path, [_reassignment(found, *each) for each in moving]))


async def get_reassignment(call: Call) -> Response:
    found, name = await resources_of(call), call.name("topic_name")
    number = (await partition_of(call)).partition_index
    moving = await call.session.ask(lambda cluster: _of_topic(cluster, name))
    one = next((each for each in moving if each[1].partition_index == number), None)
    if one is None:
        raise not_found("Reassignment of partition", number)
    return answer(_reassignment(found, *one))


def _of_topic(cluster: Cluster, name: str) -> Moving:
    numbers = [each.partition_index for each in described(cluster, name).partitions]
    return _reassignments(cluster, [ListPartitionReassignmentsTopics(name, numbers)])


def _reassignments(cluster: Cluster, topics: list[ListPartitionReassignmentsTopics] | None) -> Moving:
    request = ListPartitionReassignmentsRequest(topics=topics)
    found = cluster.ask_controller(request, ListPartitionReassignmentsResponse, codes=lambda each: [each.error_code])
    check(found.error_code, found.error_message)
    return sorted(
        ((topic.name, each) for topic in found.topics for each in topic.partitions),
        key=lambda each: (each[0], each[1].partition_index),
    )


def _reassignment(found: Resources, topic: str, moving: OngoingPartitionReassignment) -> Json:
    path = ("topics", topic, "partitions", moving.partition_index)
    return found.resource(
        "KafkaReassignment",
        (*path, "reassignment"),
        ("topic", topic, "partition", moving.partition_index, "reassignment"),
        topic_name=topic,
        partition_id=moving.partition_index,
        adding_replicas=[*moving.adding_replicas],
        removing_replicas=[*moving.removing_replicas],
        replicas=found.link(*path, "replicas"),
    )
