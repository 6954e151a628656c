"""OffsetDelete, v0: forget what a group committed for partitions of topics that it doesn't read."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Iterator, Set
from typing import Any, NamedTuple, TypeAlias

from moldau.broker.api import Answer, api
from moldau.broker.context import Context
from moldau.broker.requests.answers import ROWS_MAX, Encoded, in_thread, in_turn
from moldau.broker.rights import DELETE, GROUP, READ, TOPIC
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
    if not context.may(DELETE, GROUP, request.group_id):
        return _failed(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return _failed(ErrorCode.INVALID_GROUP_ID)
    denied = context.denied(READ, TOPIC, (topic.name for topic in request.topics))
    topics = Topics(context.services.controller.image, denied)
    if sum([1 + len(topic.partitions) for topic in request.topics]) > ROWS_MAX:
        return _delete_many(request, topics, context)
    return _delete(request, topics, _known(request, topics), context)


class Topics(NamedTuple):
    """Those that are there, and those that the client may not read."""

    image: ClusterImage
    denied: Set[str]

    def problem(self, topic: str, partition: int) -> ErrorCode:
        if topic in self.denied:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        known = self.image.topics.get(topic)
        is_there = known is not None and 0 <= partition < len(known.partitions)
        return ErrorCode.NONE if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def _delete_many(request: OffsetDeleteRequest, topics: Topics, context: Context) -> Any:
    known = await in_thread(lambda: _known(request, topics), context)
    answer = _delete(request, topics, known, context)
    return await answer if isinstance(answer, Future) else answer


def _delete(
    request: OffsetDeleteRequest, topics: Topics, known: list[tuple[str, int]], context: Context
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
        return _response(request, topics, iter(errors))

    parts = chunks(known, DELETED_AT_ONCE_MAX) if known else iter(([],))  # the group is looked for anyway
    rows = sum([1 + len(topic.partitions) for topic in request.topics])
    return in_turn(parts, delete, shape, context, rows=lambda _: rows)


def _known(request: OffsetDeleteRequest, topics: Topics) -> list[tuple[str, int]]:
    return [
        (topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
        if topics.problem(topic.name, partition.partition_index) is ErrorCode.NONE
    ]


def _failed(error: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error)


def _response(request: OffsetDeleteRequest, known: Topics, errors: Iterator[ErrorCode]) -> OffsetDeleteResponse:
    """In the order of the request; what is wrong from the start was not passed on and has no answer yet."""
    topics = []
    for topic in request.topics:
        partitions = []
        for partition in topic.partitions:
            index = partition.partition_index
            problem = known.problem(topic.name, index)
            error = next(errors) if problem is ErrorCode.NONE else problem
            partitions.append(OffsetDeleteResponsePartition(partition_index=index, error_code=error))
        topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
    return OffsetDeleteResponse(topics=topics)
