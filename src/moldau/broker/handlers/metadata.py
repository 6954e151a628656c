"""Metadata, v0 to v13: the brokers, and the topics with their partitions and leaders.

v0 asks for all topics by an empty list, later versions by null. v4 lets a client forbid auto-creation, v8 asks what the
client may do, v10 adds topic ids and v12 finds topics by them.

A topic that is created on the way is in the reply already; Apache Kafka answers UNKNOWN_TOPIC_OR_PARTITION first and
leaves the client to ask again.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeAlias

from moldau.broker.api import api
from moldau.broker.authorized_operations import ON_CLUSTER, ON_TOPIC
from moldau.broker.context import Context
from moldau.broker.leaders import offline_replicas, told_of
from moldau.broker.requests.answers import Encoded, by_size
from moldau.broker.topics.creation import auto_create
from moldau.controller.image import ClusterImage, TopicImage
from moldau.core.errors import ErrorCode
from moldau.core.ids import ZERO_UUID
from moldau.core.topic_names import is_internal, topic_name_problem
from moldau.wire.api import ApiKey
from moldau.wire.messages import MetadataRequest, MetadataResponse
from moldau.wire.messages.metadata import (
    MetadataRequestTopic,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

IDS_IN_REQUEST_SINCE = 12
CLUSTER_OPERATIONS_UNTIL = 10

Answer: TypeAlias = "MetadataResponse | Coroutine[Any, Any, MetadataResponse | Encoded[MetadataResponse]]"


@api(ApiKey.METADATA, MetadataRequest, versions=(0, 13))
def metadata(request: MetadataRequest, context: Context) -> Answer:
    services = context.services
    image = services.image
    asked = _asked(request, context.version)
    if asked is None:
        return _answer(
            request, context, image.topics.values(), lambda: [_topic(topic, image) for topic in image.topics.values()]
        )
    if context.version < IDS_IN_REQUEST_SINCE and any(one.name is None or one.topic_id != ZERO_UUID for one in asked):
        refused = [
            MetadataResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=one.name or "", topic_id=one.topic_id)
            for one in asked
        ]
        return _response(request, context, refused)
    if request.allow_auto_topic_creation and services.config.flag("auto.create.topics.enable"):
        missing = {one.name for one in asked if one.topic_id == ZERO_UUID and one.name and one.name not in image.topics}
        if missing:
            return _after_creation(request, context, asked=asked, missing=missing)
    return _answer(request, context, _known(asked, image), lambda: _described(asked, image, failures={}))


def _answer(
    request: MetadataRequest,
    context: Context,
    topics: Iterable[TopicImage | None],
    describe: Callable[[], list[MetadataResponseTopic]],
) -> Answer:
    """At once, or by a thread when it is about thousands of topics and partitions: images never change."""
    rows = sum([1 if topic is None else 1 + len(topic.partitions) for topic in topics])
    return by_size(lambda: _response(request, context, describe()), rows, context)


async def _after_creation(
    request: MetadataRequest, context: Context, *, asked: list[MetadataRequestTopic], missing: set[str]
) -> MetadataResponse | Encoded[MetadataResponse]:
    failures = await auto_create(context, sorted(missing))
    image = context.services.image
    answer = _answer(request, context, _known(asked, image), lambda: _described(asked, image, failures))
    return answer if isinstance(answer, MetadataResponse) else await answer


def _known(asked: list[MetadataRequestTopic], image: ClusterImage) -> list[TopicImage | None]:
    return [image.topics.get(one.name or image.topic_ids.get(one.topic_id, "")) for one in asked]


def _asked(request: MetadataRequest, version: int) -> list[MetadataRequestTopic] | None:
    """The topics that are asked for, each once; None for all of them."""
    if request.topics is None or (version == 0 and not request.topics):
        return None
    return list({(one.name, one.topic_id): one for one in request.topics}.values())


def _described(
    asked: list[MetadataRequestTopic], image: ClusterImage, failures: dict[str, ErrorCode]
) -> list[MetadataResponseTopic]:
    """A request that names any topic by id is about ids only."""
    by_id = [one.topic_id for one in asked if one.topic_id != ZERO_UUID]
    if by_id:
        unknown = [topic_id for topic_id in by_id if topic_id not in image.topic_ids]
        known = [topic_id for topic_id in by_id if topic_id in image.topic_ids]
        return [
            MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
            for topic_id in unknown
        ] + [_topic(image.topics[image.topic_ids[topic_id]], image) for topic_id in known]
    names = [one.name or "" for one in asked]
    there = [_topic(image.topics[name], image) for name in names if name in image.topics]
    return there + [_unknown(name, failures) for name in names if name not in image.topics]


def _unknown(name: str, failures: dict[str, ErrorCode]) -> MetadataResponseTopic:
    error = failures.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic_name_problem(name) is not None:
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    return MetadataResponseTopic(error_code=error, name=name, topic_id=ZERO_UUID, is_internal=is_internal(name))


def _topic(topic: TopicImage, image: ClusterImage) -> MetadataResponseTopic:
    alive = image.brokers
    partitions = [
        MetadataResponsePartition(
            error_code=ErrorCode.NONE if state.leader in alive else ErrorCode.LEADER_NOT_AVAILABLE,
            partition_index=index,
            leader_id=state.leader,
            leader_epoch=state.leader_epoch,
            replica_nodes=list(state.replicas),
            isr_nodes=list(state.isr),
            offline_replicas=offline_replicas(state, image),
        )
        for index, state in enumerate(topic.partitions)
    ]
    return MetadataResponseTopic(
        name=topic.name, topic_id=topic.id, is_internal=is_internal(topic.name), partitions=partitions
    )


def _response(request: MetadataRequest, context: Context, topics: list[MetadataResponseTopic]) -> MetadataResponse:
    image = context.services.image
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in told_of(image, context)
        ],
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
    )
    if request.include_cluster_authorized_operations and context.version <= CLUSTER_OPERATIONS_UNTIL:
        response.cluster_authorized_operations = ON_CLUSTER
    if request.include_topic_authorized_operations:
        for topic in topics:
            topic.topic_authorized_operations = ON_TOPIC
    return response
