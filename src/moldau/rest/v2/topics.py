"""What there is: topics, partitions, offsets, brokers."""

from __future__ import annotations

from starlette.responses import Response

from moldau.client.cluster import Cluster, check
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.rest.calls import Call, Json, answer
from moldau.rest.problems import no_partition, no_topic
from moldau.rest.v2.media_types import v2_type
from moldau.rest.v3.partitions import offsets_of
from moldau.rest.v3.topics import topics_of
from moldau.web.logins import Action
from moldau.wire.messages import DescribeConfigsRequest, DescribeConfigsResponse
from moldau.wire.messages.describe_configs import DescribeConfigsResource
from moldau.wire.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

TOPIC = 2


async def list_topics(call: Call) -> Response:
    kind = v2_type(call.request)
    topics = topics_of(await call.session.ask(lambda cluster: cluster.metadata()))
    return answer([each.name for each in topics if call.may(Action.READ, each.name or "")], media_type=kind)


async def get_topic(call: Call) -> Response:
    kind, topic = v2_type(call.request), await topic_of(call)
    name = topic.name or ""
    content = {
        "name": name,
        "configs": await call.session.ask(lambda cluster: _configs(cluster, name)),
        "partitions": _partitions(topic),
    }
    return answer(content, media_type=kind)


async def topic_of(call: Call) -> MetadataResponseTopic:
    """The one that the path names. 404 with v2's own number if there is none."""
    name = call.name("topic_name")

    def ask(cluster: Cluster) -> MetadataResponseTopic | None:
        (topic,) = cluster.metadata([name]).topics
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return None
        check(topic.error_code)
        return topic

    found = await call.session.ask(ask)
    if found is None:
        raise no_topic(name)
    return found


def _configs(cluster: Cluster, name: str) -> Json:
    request = DescribeConfigsRequest(resources=[DescribeConfigsResource(TOPIC, name, None)])
    (found,) = cluster.ask(request, DescribeConfigsResponse).results
    check(found.error_code, found.error_message)
    return {each.name: each.value for each in found.configs}


async def list_partitions(call: Call) -> Response:
    kind = v2_type(call.request)
    return answer(_partitions(await topic_of(call)), media_type=kind)


async def get_partition(call: Call) -> Response:
    kind = v2_type(call.request)
    return answer(_partition(await _wanted(call)), media_type=kind)


async def _wanted(call: Call) -> MetadataResponsePartition:
    number = call.number("partition_id")
    found = next((each for each in (await topic_of(call)).partitions if each.partition_index == number), None)
    if found is None:
        raise no_partition()
    return found


async def get_offsets(call: Call) -> Response:
    kind = v2_type(call.request)
    place = TopicPartition(call.name("topic_name"), (await _wanted(call)).partition_index)
    first, end = await call.session.ask(lambda cluster: offsets_of(cluster, place))
    return answer({"beginning_offset": first, "end_offset": end}, media_type=kind)


async def list_brokers(call: Call) -> Response:
    kind = v2_type(call.request)
    nodes = await call.session.ask(lambda cluster: cluster.nodes())
    return answer({"brokers": [*nodes]}, media_type=kind)


def _partitions(topic: MetadataResponseTopic) -> list[Json]:
    return [_partition(each) for each in sorted(topic.partitions, key=lambda each: each.partition_index)]


def _partition(partition: MetadataResponsePartition) -> Json:
    replicas = [
        {"broker": each, "leader": each == partition.leader_id, "in_sync": each in partition.isr_nodes}
        for each in partition.replica_nodes
    ]
    return {"partition": partition.partition_index, "leader": partition.leader_id, "replicas": replicas}
