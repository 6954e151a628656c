"""DeleteTopics: v5 explains its errors and refuses what is above a quota, v6 takes topics by name or by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from moldau.broker.api import api
from moldau.broker.context import Context, Services
from moldau.broker.requests.mutations import Mutations
from moldau.broker.rights import CLUSTER, CLUSTER_NAME, DELETE, DESCRIBE, TOPIC
from moldau.broker.topics.creation import TOPICS_PER_WRITE
from moldau.controller.partitions.states import Admit
from moldau.controller.topics import DeletedTopic, TopicReference, decide_delete_topics, may_delete_all
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import ZERO_UUID, TopicId
from moldau.wire.api import ApiKey
from moldau.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

IDS_SINCE = 6
PARTS = (("topics", "responses"), ("topic_names", "responses"))


def _topic_of(reference: str | DeleteTopicState, context: Context) -> str | bytes:
    """By its name, also if its id is given: a topic that is named by both is refused."""
    if isinstance(reference, str):
        return reference
    image = context.services.controller.image
    return image.topic_ids.get(TopicId(reference.topic_id), reference.name or bytes(reference.topic_id))


@api(ApiKey.DELETE_TOPICS, DeleteTopicsRequest, versions=(1, 6), parts=PARTS, subject=_topic_of, forwarded=True)
async def delete_topics(request: DeleteTopicsRequest, context: Context) -> DeleteTopicsResponse:
    services = context.services
    wanted = _references(request, context.version)
    if request.timeout_ms <= 0:
        # Who gives us no time at all has given up already.
        return _response([DeletedTopic(each.name, each.topic_id, ErrorCode.REQUEST_TIMED_OUT) for each in wanted])
    deleted, may_delete = _judged(wanted, context)
    if deleted:
        refused = {TopicReference(each.name if each.topic_id == ZERO_UUID else None, each.topic_id) for each in deleted}
        wanted = [each for each in wanted if each not in refused]
    mutations = Mutations(context, strict_since=5)
    for portion in _portions(wanted):
        deleted += await _delete(portion, services, mutations.admit, may_delete)
    return _response(deleted, mutations.throttle_ms)


def _judged(wanted: list[TopicReference], context: Context) -> tuple[list[DeletedTopic], Callable[[str], bool]]:
    """What the client is refused whatever comes, of that which is named once, by name or by id; and, for the decision,
    whether it may delete a topic. Which topics there are is known there alone: this image may lack the last of them.
    """
    if context.services.authorization is None or context.may(DELETE, CLUSTER, CLUSTER_NAME, is_audited=False):
        return [], may_delete_all
    image = context.services.controller.image
    names: dict[TopicReference, str] = {}
    for reference, times in Counter(wanted).items():
        topic = image.topic_by_id(reference.topic_id)
        name = reference.name if topic is None else topic.name
        is_by_one = (reference.name is None) == (reference.topic_id != ZERO_UUID)
        if times == 1 and is_by_one and name is not None:
            names[reference] = name
    hidden = context.denied(DESCRIBE, TOPIC, names.values())
    kept = context.denied(DELETE, TOPIC, names.values())
    judged = frozenset(names.values())

    def may_delete(name: str) -> bool:
        return name not in kept and (name in judged or context.may(DELETE, TOPIC, name))

    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    refused = []
    for reference, name in names.items():
        if reference.name is None:
            if name in kept:
                refused.append(DeletedTopic(None if name in hidden else name, reference.topic_id, error, error.message))
        elif name in hidden:
            refused.append(DeletedTopic(name, reference.topic_id, error, error.message))
    return refused, may_delete


async def _delete(
    wanted: list[TopicReference], services: Services, admit: Admit, may_delete: Callable[[str], bool]
) -> list[DeletedTopic]:
    try:
        deleted = await services.controller.write(
            lambda image: decide_delete_topics(
                image, wanted, config=services.config, admit=admit, may_delete=may_delete
            )
        )
    except ApiError as wrong:
        return [DeletedTopic(each.name, each.topic_id, wrong.code, wrong.message) for each in wanted]
    for topic in deleted:
        if topic.error is ErrorCode.NONE:
            await services.reconciliation.removed(topic.topic_id)
    return deleted


def _portions(wanted: list[TopicReference]) -> Iterator[list[TopicReference]]:
    """So many topics as are decided and followed in some milliseconds, unless one may be named twice."""
    names = {each.name for each in wanted}
    count = TOPICS_PER_WRITE if len(names) == len(wanted) and None not in names else max(1, len(wanted))
    for at in range(0, len(wanted), count):
        yield wanted[at : at + count]


def _references(request: DeleteTopicsRequest, version: int) -> list[TopicReference]:
    if version < IDS_SINCE:
        return [TopicReference(name) for name in request.topic_names]
    return [TopicReference(topic.name, TopicId(topic.topic_id)) for topic in request.topics]


def _response(deleted: list[DeletedTopic], throttle_ms: int = 0) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        throttle_time_ms=throttle_ms,
        responses=[
            DeletableTopicResult(
                name=topic.name, topic_id=topic.topic_id, error_code=topic.error, error_message=topic.message
            )
            for topic in deleted
        ],
    )
