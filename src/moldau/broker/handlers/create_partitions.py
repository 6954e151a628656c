"""CreatePartitions: the versions differ in their encoding, and v3 refuses what is above a quota."""

from __future__ import annotations

from collections import Counter

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.mutations import Mutations
from moldau.broker.rights import ALTER, TOPIC
from moldau.broker.topics import creation as topic_creation
from moldau.controller.partitions.states import ExtendedTopic, MorePartitions
from moldau.core.errors import ApiError, ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def _name_of(topic: CreatePartitionsTopic, _: Context) -> str:
    return topic.name


@api(
    ApiKey.CREATE_PARTITIONS,
    CreatePartitionsRequest,
    versions=(0, 3),
    parts=(("topics", "results"),),
    subject=_name_of,
    forwarded=True,
)
async def create_partitions(request: CreatePartitionsRequest, context: Context) -> CreatePartitionsResponse:
    wanted = [_more_partitions(topic) for topic in request.topics]
    if request.timeout_ms <= 0:
        # Who gives us no time at all has given up already.
        return _response([ExtendedTopic(topic.name, ErrorCode.REQUEST_TIMED_OUT) for topic in wanted])
    times_named = Counter(topic.name for topic in wanted)
    denied = context.denied(ALTER, TOPIC, (name for name, times in times_named.items() if times == 1))
    allowed = [topic for topic in wanted if topic.name not in denied]
    mutations = Mutations(context, strict_since=3)
    try:
        extended = await topic_creation.create_partitions(
            context.services, allowed, validate_only=request.validate_only, admit=mutations.admit
        )
    except ApiError as wrong:
        extended = [ExtendedTopic(topic.name, wrong.code, wrong.message) for topic in allowed]
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    extended += [ExtendedTopic(topic.name, error) for topic in wanted if topic.name in denied]
    return _response(extended, mutations.throttle_ms)


def _more_partitions(topic: CreatePartitionsTopic) -> MorePartitions:
    assignments = None if topic.assignments is None else [each.broker_ids for each in topic.assignments]
    return MorePartitions(topic.name, topic.count, assignments)


def _response(extended: list[ExtendedTopic], throttle_ms: int = 0) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        throttle_time_ms=throttle_ms,
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=topic.error, error_message=topic.message)
            for topic in extended
        ],
    )
