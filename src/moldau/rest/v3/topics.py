"""Topics: listed, made, given more partitions, deleted."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from starlette.responses import Response

from moldau.client.cluster import Cluster, check
from moldau.core.errors import ErrorCode
from moldau.rest.calls import Call, Json, answer, no_content
from moldau.rest.v3.resources import Resources, resources_of
from moldau.web.errors import ApiError
from moldau.web.kafka_errors import of_kafka
from moldau.web.logins import Action
from moldau.wire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    MetadataResponse,
)
from moldau.wire.messages.create_partitions import CreatePartitionsTopic
from moldau.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
)
from moldau.wire.messages.delete_topics import DeleteTopicState
from moldau.wire.messages.metadata import MetadataResponseTopic

DEFAULT = -1


class ConfigEntry(msgspec.Struct):
    name: str
    value: str | None = None


class NewTopic(msgspec.Struct):
    topic_name: str
    partitions_count: int | None = None
    replication_factor: int | None = None
    replicas_assignments: dict[int, list[int]] | None = None
    configs: list[ConfigEntry] = []
    validate_only: bool = False


class Partitions(msgspec.Struct):
    partitions_count: int


def described(cluster: Cluster, name: str) -> MetadataResponseTopic:
    """Raises Refused."""
    (topic,) = cluster.metadata([name]).topics
    check(topic.error_code)
    return topic


def topics_of(found: MetadataResponse) -> list[MetadataResponseTopic]:
    there = [each for each in found.topics if each.error_code == ErrorCode.NONE and each.name is not None]
    return sorted(there, key=lambda each: each.name or "")


async def list_topics(call: Call) -> Response:
    found = await resources_of(call)
    topics = topics_of(await call.session.ask(lambda cluster: cluster.metadata()))
    allowed = [each for each in topics if call.may(Action.READ, each.name or "")]
    return await found.listed("KafkaTopicList", ("topics",), lambda: (_topic(found, each) for each in allowed))


async def get_topic(call: Call) -> Response:
    found, name = await resources_of(call), call.name("topic_name")
    return answer(_topic(found, await call.session.ask(lambda cluster: described(cluster, name))))


async def create_topic(call: Call) -> Response:
    found = await resources_of(call)
    wanted = await call.body(NewTopic)
    if not wanted.topic_name.strip():
        raise ApiError(42206, "Payload error. Invalid topic name.")
    made = await call.session.ask(lambda cluster: _create(cluster, wanted))
    assigned = wanted.replicas_assignments or {}
    partitions = made.num_partitions if made.num_partitions >= 0 else wanted.partitions_count or len(assigned)
    replicas = made.replication_factor
    if replicas < 0:
        replicas = wanted.replication_factor or len(next(iter(assigned.values()), ()))
    content = _topic_json(found, wanted.topic_name, is_internal=False, partitions=partitions, replicas=replicas)
    return answer(content, 200 if wanted.validate_only else 201, location=found.url("topics", wanted.topic_name))


def _create(cluster: Cluster, wanted: NewTopic) -> CreatableTopicResult:
    assigned = wanted.replicas_assignments
    if not _fits(wanted):
        raise of_kafka(ErrorCode.INVALID_REQUEST, "a number is out of range")
    topic = CreatableTopic(
        wanted.topic_name,
        DEFAULT if assigned or wanted.partitions_count is None else wanted.partitions_count,
        DEFAULT if assigned or wanted.replication_factor is None else wanted.replication_factor,
        [CreatableReplicaAssignment(partition, brokers) for partition, brokers in sorted((assigned or {}).items())],
        [CreatableTopicConfig(each.name, each.value) for each in wanted.configs],
    )
    request = CreateTopicsRequest(
        topics=[topic], timeout_ms=round(cluster.timeout_s * 1_000), validate_only=wanted.validate_only
    )
    (made,) = cluster.ask_controller(
        request, CreateTopicsResponse, codes=lambda answer: [each.error_code for each in answer.topics]
    ).topics
    check(made.error_code, made.error_message)
    return made


def _fits(wanted: NewTopic) -> bool:
    """What a message of Kafka can carry."""
    numbers: Sequence[int] = [wanted.partitions_count or 0, wanted.replication_factor or 0]
    assigned = wanted.replicas_assignments or {}
    numbers = [*numbers, *assigned, *(broker for brokers in assigned.values() for broker in brokers)]
    is_short = -(1 << 15) <= (wanted.replication_factor or 0) < 1 << 15
    return is_short and all(-(1 << 31) <= each < 1 << 31 for each in numbers)


async def add_partitions(call: Call) -> Response:
    found, name = await resources_of(call), call.name("topic_name")
    wanted = await call.body(Partitions)
    await call.session.ask(lambda cluster: _grow(cluster, name, wanted.partitions_count))
    topic = await call.session.ask(lambda cluster: described(cluster, name))
    return answer({**_topic(found, topic), "partitions_count": max(wanted.partitions_count, len(topic.partitions))})


def _grow(cluster: Cluster, name: str, count: int) -> None:
    described(cluster, name)
    if not 0 < count < 1 << 31:
        raise of_kafka(ErrorCode.INVALID_PARTITIONS)
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name, count, None)], timeout_ms=round(cluster.timeout_s * 1_000)
    )
    (made,) = cluster.ask_controller(
        request, CreatePartitionsResponse, codes=lambda answer: [each.error_code for each in answer.results]
    ).results
    check(made.error_code, made.error_message)


async def delete_topic(call: Call) -> Response:
    await call.check_cluster()
    name = call.name("topic_name")
    await call.session.ask(lambda cluster: _delete(cluster, name))
    return no_content()


def _delete(cluster: Cluster, name: str) -> None:
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name)], topic_names=[name], timeout_ms=round(cluster.timeout_s * 1_000)
    )
    (gone,) = cluster.ask_controller(
        request, DeleteTopicsResponse, codes=lambda answer: [each.error_code for each in answer.responses]
    ).responses
    check(gone.error_code, gone.error_message)


def _topic(found: Resources, topic: MetadataResponseTopic) -> Json:
    return _topic_json(
        found,
        topic.name or "",
        is_internal=topic.is_internal,
        partitions=len(topic.partitions),
        replicas=len(topic.partitions[0].replica_nodes) if topic.partitions else 0,
    )


def _topic_json(found: Resources, name: str, *, is_internal: bool, partitions: int, replicas: int) -> Json:
    return found.resource(
        "KafkaTopic",
        ("topics", name),
        ("topic", name),
        topic_name=name,
        is_internal=is_internal,
        replication_factor=replicas,
        partitions_count=partitions,
        partitions=found.link("topics", name, "partitions"),
        configs=found.link("topics", name, "configs"),
        partition_reassignments=found.link("topics", name, "partitions", "-", "reassignment"),
        authorized_operations=[],
    )
