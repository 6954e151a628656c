"""ListOffsets, v1 to v11: where a partition begins, ends, and where a time lies in it.

Negative times have a meaning: -1 latest, -2 earliest (v1), -3 the record with the largest timestamp (v7), -4 earliest
on local disk (v8), -5 the last one in remote storage (v9), -6 the first one not yet there (v11). We have no remote
storage, so -4 is -2, and -5 and -6 find nothing.
"""

from __future__ import annotations

from collections import Counter

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import Offset
from moldau.replication.partition import Partition
from moldau.wire.api import ApiKey
from moldau.wire.messages import ListOffsetsRequest, ListOffsetsResponse
from moldau.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsTopicResponse,
)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
SINCE = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
LEADER_EPOCH_SINCE = 4
READ_COMMITTED = 1
UNKNOWN = -1


@api(ApiKey.LIST_OFFSETS, ListOffsetsRequest, versions=(1, 11), parts=(("topics", "topics"),))
def list_offsets(request: ListOffsetsRequest, context: Context) -> ListOffsetsResponse:
    times_named = Counter((topic.name, one.partition_index) for topic in request.topics for one in topic.partitions)
    read_committed = request.isolation_level == READ_COMMITTED
    topics = []
    for topic in request.topics:
        replies = []
        for asked in {one.partition_index: one for one in topic.partitions}.values():
            partition = context.services.partitions.get(topic.name, asked.partition_index)
            if times_named[topic.name, asked.partition_index] > 1:
                error = ErrorCode.INVALID_REQUEST
            elif asked.timestamp < 0 and context.version < SINCE.get(asked.timestamp, context.version + 1):
                error = ErrorCode.UNSUPPORTED_VERSION
            else:
                error = _check(partition, asked)
            if error is ErrorCode.NONE and partition is not None:
                reply = _find_or_refuse(partition, asked, read_committed)
                if context.version < LEADER_EPOCH_SINCE:
                    reply.leader_epoch = UNKNOWN
            else:
                reply = _answer(asked, error_code=error)
            replies.append(reply)
        if replies:
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=replies))
    return ListOffsetsResponse(topics=topics)


def _check(partition: Partition | None, asked: ListOffsetsPartition) -> ErrorCode:
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return partition.check_leader(asked.current_leader_epoch)


def _find_or_refuse(
    partition: Partition, asked: ListOffsetsPartition, read_committed: bool
) -> ListOffsetsPartitionResponse:
    try:
        return _find(partition, asked, read_committed)
    except ApiError as refused:
        return _answer(asked, error_code=refused.code)


def _find(partition: Partition, asked: ListOffsetsPartition, read_committed: bool) -> ListOffsetsPartitionResponse:
    end = partition.readable_end(read_committed)
    if asked.timestamp == LATEST:
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
        return _answer(asked)
    return _answer(
        asked, timestamp=found.timestamp_ms, offset=found.offset, leader_epoch=log.epoch_of(Offset(found.offset))
    )


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
