"""ListOffsets, v1 to v11: where a partition begins, ends, and where a time lies in it.

Negative times have a meaning: -1 latest, -2 earliest (v1), -3 the record with the largest timestamp (v7), -4 earliest
on local disk (v8), -5 the last one in remote storage (v9), -6 the first one not yet there (v11). We have no remote
storage, so -4 is -2, and -5 and -6 find nothing. To a follower, and to a debugging consumer (replica id -2), which may
ask any replica, a log ends where it ends, and not with what is committed.
"""

from __future__ import annotations

from asyncio import Future
from collections import Counter
from collections.abc import Set

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, in_turn
from moldau.broker.rights import DESCRIBE, TOPIC
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import Offset
from moldau.replication.partition import Partition
from moldau.wire.api import ApiKey
from moldau.wire.messages import ListOffsetsRequest, ListOffsetsResponse
from moldau.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
SINCE = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
OFFSET_NOT_AVAILABLE_SINCE = 5
LEADER_EPOCH_SINCE = 4
READ_COMMITTED = 1
UNKNOWN = -1
CONSUMER, DEBUGGING_CONSUMER = -1, -2  # replica ids that are none


@api(ApiKey.LIST_OFFSETS, ListOffsetsRequest, versions=(1, 11))
def list_offsets(
    request: ListOffsetsRequest, context: Context
) -> ListOffsetsResponse | Future[ListOffsetsResponse | Encoded[ListOffsetsResponse]]:
    repeated = _repeated(request)
    denied = context.denied(DESCRIBE, TOPIC, (topic.name for topic in request.topics))
    replica_id, read_committed = request.replica_id, request.isolation_level == READ_COMMITTED
    wanted = [(topic, _each_once(topic) if repeated else topic.partitions) for topic in request.topics]

    def answer(one: tuple[str, ListOffsetsPartition]) -> ListOffsetsPartitionResponse:
        topic, asked = one
        if topic in denied:
            return _answer(asked, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if (topic, asked.partition_index) in repeated:
            return _answer(asked, error_code=ErrorCode.INVALID_REQUEST)
        if asked.timestamp < 0 and context.version < SINCE.get(asked.timestamp, context.version + 1):
            return _answer(asked, error_code=ErrorCode.UNSUPPORTED_VERSION)
        partition = context.services.partitions.get(topic, asked.partition_index)
        error = _check(partition, asked, replica_id)
        if error is not ErrorCode.NONE or partition is None:
            return _answer(asked, error_code=error)
        end = partition.readable_end(read_committed) if replica_id == CONSUMER else partition.log.end_offset
        reply = _find_or_refuse(partition, asked, end, is_consumer=replica_id == CONSUMER)
        if context.version < LEADER_EPOCH_SINCE:
            reply.leader_epoch = UNKNOWN
        if reply.error_code == ErrorCode.OFFSET_NOT_AVAILABLE and context.version < OFFSET_NOT_AVAILABLE_SINCE:
            reply.error_code = ErrorCode.LEADER_NOT_AVAILABLE
        return reply

    def shape(answers: list[ListOffsetsPartitionResponse]) -> ListOffsetsResponse:
        left = iter(answers)
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(name=topic.name, partitions=[next(left) for _ in partitions])
                for topic, partitions in wanted
                if partitions
            ]
        )

    each = ((topic.name, asked) for topic, partitions in wanted for asked in partitions)
    return in_turn(each, answer, shape, context)


def _each_once(topic: ListOffsetsTopic) -> list[ListOffsetsPartition]:
    return list({one.partition_index: one for one in topic.partitions}.values())


def _repeated(request: ListOffsetsRequest) -> Set[tuple[str, int]]:
    """What is named more than once, in one topic or in several of the same name; usually nothing."""
    topics = request.topics
    if len({topic.name for topic in topics}) == len(topics):
        many = [topic.partitions for topic in topics if len(topic.partitions) > 1]
        if all(len({one.partition_index for one in partitions}) == len(partitions) for partitions in many):
            return frozenset()
    times_named = Counter((topic.name, one.partition_index) for topic in topics for one in topic.partitions)
    return {place for place, times in times_named.items() if times > 1}


def _check(partition: Partition | None, asked: ListOffsetsPartition, replica_id: int) -> ErrorCode:
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    error = partition.check_leader(asked.current_leader_epoch)
    is_any_replica = error is ErrorCode.NOT_LEADER_OR_FOLLOWER and replica_id == DEBUGGING_CONSUMER
    return ErrorCode.NONE if is_any_replica else error


def _find_or_refuse(
    partition: Partition, asked: ListOffsetsPartition, end: Offset, *, is_consumer: bool
) -> ListOffsetsPartitionResponse:
    try:
        return _find(partition, asked, end, is_consumer=is_consumer)
    except ApiError as refused:
        return _answer(asked, error_code=refused.code)


def _find(
    partition: Partition, asked: ListOffsetsPartition, end: Offset, *, is_consumer: bool
) -> ListOffsetsPartitionResponse:
    if asked.timestamp == LATEST:
        _refuse_catching_up(partition, is_consumer=is_consumer)
        return _answer(asked, offset=end, leader_epoch=partition.leader_epoch)
    log = partition.log
    if asked.timestamp in (EARLIEST, EARLIEST_LOCAL):
        epoch = log.epoch_of(log.log_start_offset)
        # A log without records has no epoch of its own: what comes first will be of this leader's.
        return _answer(asked, offset=log.log_start_offset, leader_epoch=partition.leader_epoch if epoch < 0 else epoch)
    if asked.timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _answer(asked)
    found = log.max_timestamp() if asked.timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(asked.timestamp)
    # What is not yet committed has no place in time for a reader.
    if found is None or found.offset >= end:
        _refuse_catching_up(partition, is_consumer=is_consumer)
        return _answer(asked)
    return _answer(
        asked, timestamp=found.timestamp_ms, offset=found.offset, leader_epoch=log.epoch_of(Offset(found.offset))
    )


def _refuse_catching_up(partition: Partition, *, is_consumer: bool) -> None:
    if is_consumer and partition.is_catching_up:
        raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE)


def _answer(
    asked: ListOffsetsPartition,
    *,
    error_code: ErrorCode = ErrorCode.NONE,
    timestamp: int = UNKNOWN,
    offset: int = UNKNOWN,
    leader_epoch: int = UNKNOWN,
) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        error_code=error_code,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=leader_epoch,
    )
