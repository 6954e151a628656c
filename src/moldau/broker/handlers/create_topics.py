"""CreateTopics: v5 answers with the topic's numbers and configuration, v6 refuses above a quota, v7 has the id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import ROWS_MAX, Encoded, encoded, in_thread
from moldau.broker.requests.mutations import Mutations
from moldau.broker.rights import CREATE, DESCRIBE_CONFIGS, TOPIC, may_create_topics
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
    denied = _denied(wanted, context)
    allowed = [topic for topic in wanted if topic.name not in denied] if denied else wanted
    mutations = Mutations(context, strict_since=6)
    try:
        created = await topic_creation.create_topics(
            context.services, allowed, validate_only=request.validate_only, admit=mutations.admit
        )
    except ApiError as wrong:
        created = [CreatedTopic(topic.name, wrong.code, wrong.message) for topic in allowed]
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    created += [CreatedTopic(topic.name, error, "Authorization failed.") for topic in wanted if topic.name in denied]
    return await _response(created, context, mutations.throttle_ms)


def _denied(wanted: list[NewTopic], context: Context) -> Set[str]:
    """What may not be created. Whoever names a topic twice is told that, and nothing else."""
    if context.services.authorization is None or may_create_topics(context):
        return frozenset()
    times_named = Counter(topic.name for topic in wanted)
    return context.denied(CREATE, TOPIC, (name for name, times in times_named.items() if times == 1))


async def _response(
    created: list[CreatedTopic], context: Context, throttle_ms: int = 0
) -> CreateTopicsResponse | Encoded[CreateTopicsResponse]:
    made = (topic.name for topic in created if topic.error is ErrorCode.NONE)
    hidden = context.denied(DESCRIBE_CONFIGS, TOPIC, made, is_audited=False)

    def shape() -> CreateTopicsResponse:
        return CreateTopicsResponse(
            throttle_time_ms=throttle_ms,
            topics=[_shape_hidden(topic) if topic.name in hidden else _shape(topic) for topic in created],
        )

    return shape() if len(created) <= TOPICS_MAX else await encoded(shape, context)


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


def _shape_hidden(topic: CreatedTopic) -> CreatableTopicResult:
    """For a client that may create the topic and not see its configuration."""
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_message=None,
        topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    )


def _config(entry: ConfigEntry) -> CreatableTopicConfigs:
    return CreatableTopicConfigs(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
    )
