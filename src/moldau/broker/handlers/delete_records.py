"""DeleteRecords: moves the start of a log up; the versions differ in their encoding only."""

from __future__ import annotations

from asyncio import Future

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, in_turn
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import NO_OFFSET, Offset
from moldau.wire.api import ApiKey
from moldau.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


@api(ApiKey.DELETE_RECORDS, DeleteRecordsRequest, versions=(0, 2))
def delete_records(
    request: DeleteRecordsRequest, context: Context
) -> DeleteRecordsResponse | Future[DeleteRecordsResponse | Encoded[DeleteRecordsResponse]]:
    wanted: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            wanted.setdefault(topic.name, {})[partition.partition_index] = partition.offset

    def shape(deleted: list[DeleteRecordsPartitionResult]) -> DeleteRecordsResponse:
        left = iter(deleted)
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(name=name, partitions=[next(left) for _ in of]) for name, of in wanted.items()
            ]
        )

    each = ((name, index, Offset(offset)) for name, of in wanted.items() for index, offset in of.items())
    return in_turn(each, lambda one: _delete(*one, context), shape, context)


def _delete(topic: str, index: int, before: Offset, context: Context) -> DeleteRecordsPartitionResult:
    partition = context.services.partitions.get(topic, index)
    if partition is None:
        return _refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if partition.is_internal:
        # The broker's own records: what is old among them, it finds itself.
        return _refused(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if not partition.is_leader:
        return _refused(index, partition.refusal)
    if partition.log.config.compact and not partition.log.config.delete:
        # A compacted log promises the last value of every key: nobody may cut its head off.
        return _refused(index, ErrorCode.POLICY_VIOLATION)
    try:
        deleted = partition.delete_records(before, now_ms=context.services.clock.now_ms())
    except ApiError as refused:
        return _refused(index, refused.code)
    if isinstance(deleted, ErrorCode):
        return _refused(index, deleted)
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=deleted)


def _refused(index: int, error: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=NO_OFFSET, error_code=error)
