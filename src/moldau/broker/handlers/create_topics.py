"""CreateTopics: v5 answers with the topic's numbers and configuration, v7 with its id."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import ROWS_MAX, Encoded, encoded, in_thread
from moldau.broker.topics import creation as topic_creation
from moldau.controller.topics import CreatedTopic, NewTopic
from moldau.core.config.describe import ConfigEntry
from moldau.core.errors import ApiError, ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

TOPICS_MAX = 100  # that are answered at once; with the forty configurations of each a topic takes twenty microseconds


@api(ApiKey.CREATE_TOPICS, CreateTopicsRequest, versions=(2, 7), forwarded=True)
async def create_topics(
    request: CreateTopicsRequest, context: Context
) -> CreateTopicsResponse | Encoded[CreateTopicsResponse]:
    if sum([1 + len(topic.assignments) + len(topic.configs) for topic in request.topics]) <= ROWS_MAX:
        wanted = [_new_topic(topic) for topic in request.topics]
    else:
        wanted = await in_thread(lambda: [_new_topic(topic) for topic in request.topics], context)
    if request.timeout_ms <= 0:
        # Who gives us no time at all has given up already.
        late = [CreatedTopic(topic.name, ErrorCode.REQUEST_TIMED_OUT) for topic in wanted]
        return await _response(late, context)
    try:
        created = await topic_creation.create_topics(context.services, wanted, validate_only=request.validate_only)
    except ApiError as wrong:
        created = [CreatedTopic(topic.name, wrong.code, wrong.message) for topic in wanted]
    return await _response(created, context)


async def _response(
    created: list[CreatedTopic], context: Context
) -> CreateTopicsResponse | Encoded[CreateTopicsResponse]:
    if len(created) <= TOPICS_MAX:
        return CreateTopicsResponse(topics=[_shape(topic) for topic in created])
    return await encoded(lambda: CreateTopicsResponse(topics=[_shape(topic) for topic in created]), context)


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[(each.partition_index, each.broker_ids) for each in topic.assignments],
        configs=[(each.name, each.value) for each in topic.configs],
    )


def _shape(topic: CreatedTopic) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_code=topic.error,
        error_message=topic.message,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=[_config(entry) for entry in topic.configs],
    )


def _config(entry: ConfigEntry) -> CreatableTopicConfigs:
    return CreatableTopicConfigs(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
    )
