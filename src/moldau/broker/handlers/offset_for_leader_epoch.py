"""OffsetForLeaderEpoch: where a leader epoch ends, so that a reader notices a log that was cut below its position.

v3 names the replica that asks, v4 is the same in the flexible encoding.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Set

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, in_turn
from moldau.broker.rights import CLUSTER, CLUSTER_ACTION, CLUSTER_NAME, DESCRIBE, TOPIC
from moldau.core.errors import ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


@api(ApiKey.OFFSET_FOR_LEADER_EPOCH, OffsetForLeaderEpochRequest, versions=(2, 4))
def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, context: Context
) -> OffsetForLeaderEpochResponse | Future[OffsetForLeaderEpochResponse | Encoded[OffsetForLeaderEpochResponse]]:
    denied: Set[str] = frozenset()
    if not context.may(CLUSTER_ACTION, CLUSTER, CLUSTER_NAME, is_audited=False):
        denied = context.denied(DESCRIBE, TOPIC, (topic.topic for topic in request.topics))

    def shape(ends: list[EpochEndOffset]) -> OffsetForLeaderEpochResponse:
        left = iter(ends)
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(topic=topic.topic, partitions=[next(left) for _ in topic.partitions])
                for topic in request.topics
            ]
        )

    asked = ((topic.topic, wanted) for topic in request.topics for wanted in topic.partitions)

    def epoch_end(one: tuple[str, OffsetForLeaderPartition]) -> EpochEndOffset:
        topic, wanted = one
        if topic in denied:
            return EpochEndOffset(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, partition=wanted.partition)
        return _epoch_end(topic, wanted, context)

    return in_turn(asked, epoch_end, shape, context)


def _epoch_end(topic: str, wanted: OffsetForLeaderPartition, context: Context) -> EpochEndOffset:
    partition = context.services.partitions.get(topic, wanted.partition)
    if partition is None:
        return EpochEndOffset(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partition=wanted.partition)
    error = partition.check_leader(wanted.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return EpochEndOffset(error_code=error, partition=wanted.partition)
    epoch, end_offset = partition.epoch_end(wanted.leader_epoch)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)
