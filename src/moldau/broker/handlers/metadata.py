"""Metadata, v0 to v13: the brokers, and the topics with their partitions and leaders.

v0 asks for all topics by an empty list, later versions by null. v4 lets a client forbid auto-creation, v8 asks what the
client may do, v10 adds topic ids and v12 finds topics by them.

A topic that is created on the way is in the reply already; Apache Kafka answers UNKNOWN_TOPIC_OR_PARTITION first and
leaves the client to ask again.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Set
from typing import Any, TypeAlias

from moldau.broker.api import api
from moldau.broker.authorized_operations import NOT_ASKED, ON_TOPIC
from moldau.broker.context import Context
from moldau.broker.leaders import offline_replicas, told_of
from moldau.broker.requests.answers import Encoded, by_size
from moldau.broker.rights import (
    CREATE,
    DESCRIBE,
    TOPIC,
    may_create_topics,
    operations_on_cluster,
    operations_on_topic,
)
from moldau.broker.topics.creation import auto_create
from moldau.controller.image import ClusterImage, TopicImage
from moldau.coordinator.long_work import in_slices
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
        if services.authorization is not None:
            return _all_visible(request, context)
        return _answer(
            request, context, image.topics.values(), lambda: [_topic(topic, image) for topic in image.topics.values()]
        )
    if context.version < IDS_IN_REQUEST_SINCE and any(one.name is None or one.topic_id != ZERO_UUID for one in asked):
        refused = [
            MetadataResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=one.name or "", topic_id=one.topic_id)
            for one in asked
        ]
        return _response(request, context, refused, on_cluster=_cluster_operations(request, context))
    hidden = context.denied(DESCRIBE, TOPIC, _names(asked, image))
    if request.allow_auto_topic_creation and services.config.flag("auto.create.topics.enable"):
        missing = {one.name for one in asked if one.topic_id == ZERO_UUID and one.name and one.name not in image.topics}
        missing -= hidden
        if missing:
            return _after_creation(request, context, asked=asked, missing=missing, hidden=hidden)
    return _answer_for(request, context, asked, hidden=hidden, failures={})


def _answer_for(
    request: MetadataRequest,
    context: Context,
    asked: list[MetadataRequestTopic],
    *,
    hidden: Set[str],
    failures: dict[str, ErrorCode],
) -> Answer:
    image = context.services.image

    def answer(operations: Mapping[str, int] | None = None) -> Answer:
        known = _known(asked, image)
        return _answer(
            request, context, known, lambda: _described(asked, image, failures, hidden), operations=operations
        )

    if context.services.authorization is None or not request.include_topic_authorized_operations:
        return answer()
    return _with_operations([name for name in _names(asked, image) if name not in hidden], answer, context)


async def _with_operations(
    names: list[str], answer: Callable[[Mapping[str, int]], Answer], context: Context
) -> MetadataResponse | Encoded[MetadataResponse]:
    """A topic has eight of them, each of which the authorizer is asked about."""
    operations = {}
    async for name in in_slices(names, context.services.long_work):
        operations[name] = operations_on_topic(context, name)
    answered = answer(operations)
    return answered if isinstance(answered, MetadataResponse) else await answered


async def _all_visible(request: MetadataRequest, context: Context) -> MetadataResponse | Encoded[MetadataResponse]:
    """All that the client may know of; that there are others is not told, and no denial."""
    image = context.services.image
    visible: list[TopicImage] = []
    operations: dict[str, int] = {}
    async for topic in in_slices([*image.topics.values()], context.services.long_work):
        if context.may(DESCRIBE, TOPIC, topic.name, is_audited=False):
            visible.append(topic)
            if request.include_topic_authorized_operations:
                operations[topic.name] = operations_on_topic(context, topic.name)
    answer = _answer(
        request, context, visible, lambda: [_topic(topic, image) for topic in visible], operations=operations
    )
    return answer if isinstance(answer, MetadataResponse) else await answer


def _answer(
    request: MetadataRequest,
    context: Context,
    topics: Iterable[TopicImage | None],
    describe: Callable[[], list[MetadataResponseTopic]],
    *,
    operations: Mapping[str, int] | None = None,
) -> Answer:
    """At once, or by a thread when it is about thousands of topics and partitions: images never change."""
    rows = sum([1 if topic is None else 1 + len(topic.partitions) for topic in topics])
    on_cluster = _cluster_operations(request, context)
    return by_size(
        lambda: _response(request, context, describe(), on_cluster=on_cluster, operations=operations), rows, context
    )


def _cluster_operations(request: MetadataRequest, context: Context) -> int:
    is_asked = request.include_cluster_authorized_operations and context.version <= CLUSTER_OPERATIONS_UNTIL
    return operations_on_cluster(context) if is_asked else NOT_ASKED


async def _after_creation(
    request: MetadataRequest,
    context: Context,
    *,
    asked: list[MetadataRequestTopic],
    missing: set[str],
    hidden: Set[str],
) -> MetadataResponse | Encoded[MetadataResponse]:
    denied = frozenset[str]() if may_create_topics(context) else context.denied(CREATE, TOPIC, missing)
    failures = await auto_create(context, sorted(missing - denied)) if denied < missing else {}
    failures |= dict.fromkeys(denied, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    answer = _answer_for(request, context, asked, hidden=hidden, failures=failures)
    return answer if isinstance(answer, MetadataResponse) else await answer


def _names(asked: list[MetadataRequestTopic], image: ClusterImage) -> list[str]:
    """Of the topics that are asked for, but for ids that are of none."""
    by_id = [image.topic_ids.get(one.topic_id) for one in asked if one.topic_id != ZERO_UUID]
    return [name for name in by_id if name is not None] if by_id else [one.name or "" for one in asked]


def _known(asked: list[MetadataRequestTopic], image: ClusterImage) -> list[TopicImage | None]:
    return [image.topics.get(one.name or image.topic_ids.get(one.topic_id, "")) for one in asked]


def _asked(request: MetadataRequest, version: int) -> list[MetadataRequestTopic] | None:
    """The topics that are asked for, each once; None for all of them."""
    if request.topics is None or (version == 0 and not request.topics):
        return None
    return list({(one.name, one.topic_id): one for one in request.topics}.values())


def _described(
    asked: list[MetadataRequestTopic], image: ClusterImage, failures: dict[str, ErrorCode], hidden: Set[str]
) -> list[MetadataResponseTopic]:
    """A request that names any topic by id is about ids only. Of a hidden topic nothing is told but what was asked."""
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    by_id = [one.topic_id for one in asked if one.topic_id != ZERO_UUID]
    if by_id:
        unknown = [topic_id for topic_id in by_id if topic_id not in image.topic_ids]
        known = {topic_id: image.topic_ids[topic_id] for topic_id in by_id if topic_id in image.topic_ids}
        refused = [topic_id for topic_id, name in known.items() if name in hidden]
        return (
            [MetadataResponseTopic(error_code=denied, name=None, topic_id=topic_id) for topic_id in refused]
            + [
                MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
                for topic_id in unknown
            ]
            + [_topic(image.topics[name], image) for name in known.values() if name not in hidden]
        )
    all_names = [one.name or "" for one in asked]
    names = [name for name in all_names if name not in hidden]
    there = [_topic(image.topics[name], image) for name in names if name in image.topics]
    return (
        there
        + [_unknown(name, failures) for name in names if name not in image.topics]
        + [MetadataResponseTopic(error_code=denied, name=name) for name in all_names if name in hidden]
    )


def _unknown(name: str, failures: dict[str, ErrorCode]) -> MetadataResponseTopic:
    error = failures.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if error is not ErrorCode.TOPIC_AUTHORIZATION_FAILED and topic_name_problem(name) is not None:
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


def _response(
    request: MetadataRequest,
    context: Context,
    topics: list[MetadataResponseTopic],
    *,
    on_cluster: int,
    operations: Mapping[str, int] | None = None,
) -> MetadataResponse:
    """`operations` are those of topics that the client knows of; None where it may do everything."""
    image = context.services.image
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in told_of(image, context)
        ],
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
        cluster_authorized_operations=on_cluster,
    )
    if request.include_topic_authorized_operations:
        for topic in topics:
            if operations is None:
                topic.topic_authorized_operations = ON_TOPIC
            elif topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                topic.topic_authorized_operations = operations.get(topic.name or "", NOT_ASKED)
    return response
