"""OffsetDelete, v0: forget what a group committed for partitions of topics that it doesn't read."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Iterator
from typing import Any, TypeAlias

from moldau.broker.api import Answer, api
from moldau.broker.context import Context
from moldau.broker.requests.answers import ROWS_MAX, Encoded, in_thread, in_turn
from moldau.controller.image import ClusterImage
from moldau.coordinator.long_work import chunks
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.groups.shard import GroupShard
from moldau.wire.api import ApiKey
from moldau.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

DELETED_AT_ONCE_MAX = 200  # to decide and write so many takes some milliseconds

Errors: TypeAlias = ErrorCode | list[ErrorCode]
"""Of each partition, or why nothing was deleted."""


@api(ApiKey.OFFSET_DELETE, OffsetDeleteRequest, versions=(0, 0))
def offset_delete(request: OffsetDeleteRequest, context: Context) -> Answer:
    if not request.group_id:
        return _failed(ErrorCode.INVALID_GROUP_ID)
    image = context.services.controller.image
    if sum([1 + len(topic.partitions) for topic in request.topics]) > ROWS_MAX:
        return _delete_many(request, image, context)
    return _delete(request, image, _known(request, image), context)


async def _delete_many(request: OffsetDeleteRequest, image: ClusterImage, context: Context) -> Any:
    known = await in_thread(lambda: _known(request, image), context)
    answer = _delete(request, image, known, context)
    return await answer if isinstance(answer, Future) else answer


def _delete(
    request: OffsetDeleteRequest, image: ClusterImage, known: list[tuple[str, int]], context: Context
) -> OffsetDeleteResponse | Future[OffsetDeleteResponse | Encoded[OffsetDeleteResponse]]:
    """Some partitions after the other, each of which is judged and deleted on its own."""

    def delete(some: list[tuple[str, int]]) -> Errors | Future[Errors]:
        def decide(shard: GroupShard, _: int) -> Decision[Errors]:
            return shard.decide_delete_offsets(request.group_id, some)

        return context.services.groups.write(request.group_id, decide, lambda error: error)

    def shape(answers: list[Errors]) -> OffsetDeleteResponse:
        errors: list[ErrorCode] = []
        for answer in answers:
            if isinstance(answer, ErrorCode):
                return _failed(answer)
            errors += answer
        return _response(request, image, iter(errors))

    parts = chunks(known, DELETED_AT_ONCE_MAX) if known else iter(([],))  # the group is looked for anyway
    rows = sum([1 + len(topic.partitions) for topic in request.topics])
    return in_turn(parts, delete, shape, context, rows=lambda _: rows)


def _known(request: OffsetDeleteRequest, image: ClusterImage) -> list[tuple[str, int]]:
    return [
        (topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
        if _exists(image, topic.name, partition.partition_index)
    ]


def _exists(image: ClusterImage, topic: str, partition: int) -> bool:
    known = image.topics.get(topic)
    return known is not None and 0 <= partition < len(known.partitions)


def _failed(error: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error)


def _response(request: OffsetDeleteRequest, image: ClusterImage, errors: Iterator[ErrorCode]) -> OffsetDeleteResponse:
    """In the order of the request; what doesn't exist was not passed on and has no answer yet."""
    topics = []
    for topic in request.topics:
        partitions = []
        for partition in topic.partitions:
            index = partition.partition_index
            error = next(errors) if _exists(image, topic.name, index) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            partitions.append(OffsetDeleteResponsePartition(partition_index=index, error_code=error))
        topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
    return OffsetDeleteResponse(topics=topics)
