"""DescribeProducers: which idempotent producers a partition remembers, as its leader sees them."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Set

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, in_turn, refuse_repetition
from moldau.broker.rights import READ, TOPIC
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.topic_names import topic_name_problem
from moldau.wire.api import ApiKey
from moldau.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


@api(ApiKey.DESCRIBE_PRODUCERS, DescribeProducersRequest, versions=(0, 0))
def describe_producers(
    request: DescribeProducersRequest, context: Context
) -> DescribeProducersResponse | Future[DescribeProducersResponse | Encoded[DescribeProducersResponse]]:
    refuse_repetition([topic.name for topic in request.topics])
    for topic in request.topics:
        refuse_repetition(topic.partition_indexes)
    denied = context.denied(READ, TOPIC, (topic.name for topic in request.topics))
    asked = ((topic.name, index) for topic in request.topics for index in topic.partition_indexes)

    def shape(described: list[PartitionResponse]) -> DescribeProducersResponse:
        left = iter(described)
        return DescribeProducersResponse(
            topics=[
                TopicResponse(name=topic.name, partitions=[next(left) for _ in topic.partition_indexes])
                for topic in request.topics
            ]
        )

    def producers(described: list[PartitionResponse]) -> int:
        return sum([1 + len(each.active_producers) for each in described])

    return in_turn(asked, lambda one: _describe(*one, denied, context), shape, context, rows=producers)


def _describe(topic: str, index: int, denied: Set[str], context: Context) -> PartitionResponse:
    try:
        if topic in denied:
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        producers = _active_producers(topic, index, context)
    except ApiError as wrong:
        return PartitionResponse(partition_index=index, error_code=wrong.code, error_message=wrong.message or None)
    return PartitionResponse(partition_index=index, active_producers=producers)


def _active_producers(topic: str, index: int, context: Context) -> list[ProducerState]:
    problem = topic_name_problem(topic)
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if topic not in context.services.controller.image.topics:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = context.services.partitions.get(topic, index)
    if partition is None:
        raise ApiError(context.services.partitions.why_missing(topic, index), "")
    if partition.log.offline is not None:  # a follower's log knows its producers as well as the leader's
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "")
    return [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=producer.transaction_start,
        )
        for producer_id, producer in partition.log.producers.producers.items()
    ]
