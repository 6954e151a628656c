"""OffsetDelete, v0: forget what a group committed for partitions of topics that it doesn't read."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Iterator

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.controller.image import ClusterImage
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


@api(ApiKey.OFFSET_DELETE, OffsetDeleteRequest, versions=(0, 0))
def offset_delete(
    request: OffsetDeleteRequest, context: Context
) -> OffsetDeleteResponse | Future[OffsetDeleteResponse]:
    if not request.group_id:
        return _failed(ErrorCode.INVALID_GROUP_ID)
    image = context.services.controller.image
    known = [
        (topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
        if _exists(image, topic.name, partition.partition_index)
    ]

    def shape(errors: ErrorCode | list[ErrorCode]) -> OffsetDeleteResponse:
        if isinstance(errors, ErrorCode):
            return _failed(errors)
        return _response(request, image, iter(errors))

    def decide(shard: GroupShard, _: int) -> Decision[OffsetDeleteResponse]:
        return shard.decide_delete_offsets(request.group_id, known).shaped(shape)

    return context.services.groups.write(request.group_id, decide, _failed)


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
