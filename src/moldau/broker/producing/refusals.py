"""What is said of partitions that could not be written to."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from moldau.broker.leaders import current_leader
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import TopicId
from moldau.log.errors import LogError
from moldau.replication.partition import Partition
from moldau.wire.messages import ProduceRequest
from moldau.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from moldau.broker.context import Services

CURRENT_LEADER_SINCE = 10
# Apache Kafka tells the log's start with an error that came from the log, but for these.
_WITHOUT_LOG_START = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
_LEADER_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def not_here(
    name: str, topic_id: bytes | None, *, index: int, services: Services, denied: Set[str] | None
) -> ApiError | None:
    """Why there is no such partition for the client: it isn't known at all, others have it, or it is denied."""
    image = services.controller.image
    named = name if topic_id is None else image.topic_ids.get(TopicId(topic_id), "")
    if denied is not None and named in denied:
        return ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    known = image.topics.get(named)
    if known is not None and 0 <= index < len(known.partitions):
        return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if known is None and topic_id is not None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
    return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def refused(
    wrong: ApiError, data: PartitionProduceData, *, partition: Partition | None, version: int
) -> PartitionProduceResponse:
    reply = PartitionProduceResponse(
        index=data.index,
        error_code=wrong.code,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        error_message=wrong.message or None,
    )
    if isinstance(wrong, LogError):
        reply.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in wrong.record_errors
        ]
        if partition is not None and wrong.code not in _WITHOUT_LOG_START:
            reply.log_start_offset = partition.log.log_start_offset
    if partition is not None:
        name_leader(reply, partition, version)
    return reply


def name_leader(row: PartitionProduceResponse, partition: Partition, version: int) -> None:
    """Tell a client that came to the wrong broker who leads."""
    if row.error_code in _LEADER_MOVED and version >= CURRENT_LEADER_SINCE:
        row.current_leader = current_leader(partition)


def moved_to(topics: list[TopicProduceResponse]) -> set[int]:
    return {
        partition.current_leader.leader_id
        for topic in topics
        for partition in topic.partition_responses
        if partition.current_leader.leader_id >= 0
    }


def all_refused(request: ProduceRequest, error: ErrorCode) -> list[TopicProduceResponse]:
    return [
        TopicProduceResponse(
            topic.name,
            topic.topic_id,
            [PartitionProduceResponse(data.index, error, -1) for data in topic.partition_data],
        )
        for topic in request.topic_data
    ]
