"""DeleteRecords: moves the start of a log up; the versions differ in their encoding only.

The answer waits for followers that live to have moved theirs, for as long as the request allows.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from typing import TYPE_CHECKING

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, in_turn
from moldau.broker.rights import DELETE, TOPIC
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import NO_OFFSET, Offset
from moldau.replication.partition import Partition
from moldau.wire.api import ApiKey
from moldau.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from moldau.replication.delayed_deletion import Deleted


@api(ApiKey.DELETE_RECORDS, DeleteRecordsRequest, versions=(0, 2))
def delete_records(
    request: DeleteRecordsRequest, context: Context
) -> DeleteRecordsResponse | Future[DeleteRecordsResponse | Encoded[DeleteRecordsResponse]]:
    wanted: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            wanted.setdefault(topic.name, {})[partition.partition_index] = partition.offset
    delayed: list[Future[Deleted]] = []
    denied = context.denied(DELETE, TOPIC, wanted)

    def delete(one: tuple[str, int, Offset]) -> Deleted | Future[Deleted]:
        if one[0] in denied:
            return _refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        deleted = _delete(*one, request.timeout_ms, context)
        if isinstance(deleted, Future):
            delayed.append(deleted)
        return deleted

    def shape(deleted: list[Deleted]) -> DeleteRecordsResponse:
        left = iter(deleted)
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(name=name, partitions=[_row(index, *next(left)) for index in of])
                for name, of in wanted.items()
            ]
        )

    each = ((name, index, Offset(offset)) for name, of in wanted.items() for index, offset in of.items())
    answer = in_turn(each, delete, shape, context)
    if isinstance(answer, Future):
        answer.add_done_callback(lambda _: _give_up(delayed))
    return answer


def _give_up(delayed: list[Future[Deleted]]) -> None:
    """A client that went away waits for none of them, and may have allowed days."""
    for each in delayed:
        each.cancel()


def _delete(topic: str, index: int, before: Offset, timeout_ms: int, context: Context) -> Deleted | Future[Deleted]:
    partition = context.services.partitions.get(topic, index)
    if partition is None:
        return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if partition.is_internal:
        # The broker's own records: what is old among them, it finds itself.
        return _refused(ErrorCode.INVALID_TOPIC_EXCEPTION)
    if not partition.is_leader:
        return _refused(partition.refusal)
    if partition.log.config.compact and not partition.log.config.delete:
        # A compacted log promises the last value of every key: nobody may cut its head off.
        return _refused(ErrorCode.POLICY_VIOLATION)
    try:
        offset = partition.delete_records(before, now_ms=context.services.clock.now_ms())
    except ApiError as refused:
        return _refused(refused.code)
    if isinstance(offset, ErrorCode):
        return _refused(offset)
    low_watermark = partition.low_watermark
    return (ErrorCode.NONE, low_watermark) if low_watermark >= offset else _delay(partition, offset, timeout_ms)


def _delay(partition: Partition, offset: Offset, timeout_ms: int) -> Future[Deleted]:
    from moldau.replication.delayed_deletion import DelayedDeletion  # a partition without followers never waits

    return DelayedDeletion(partition, offset, timeout_ms=timeout_ms, loop=asyncio.get_running_loop()).answer


def _refused(error: ErrorCode) -> Deleted:
    return error, Offset(NO_OFFSET)


def _row(index: int, error: ErrorCode, low_watermark: Offset) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark, error_code=error)
