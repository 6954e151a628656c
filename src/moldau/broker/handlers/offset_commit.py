"""OffsetCommit, v2 to v10: remember how far a group has consumed. Without a member it is a simple consumer's.

v2 to v4 say how long to keep it, v6 adds the leader epoch, v7 static members, v9 is also for members of consumer
groups and has another error for a group that isn't there, and v10 names topics by id. Whatever names the topic, its id
is kept with the offset.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Iterable, Iterator, Set
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from moldau.broker.api import Answer, api
from moldau.broker.context import Context
from moldau.broker.requests.answers import ROWS_MAX, encoded, in_thread, in_turn
from moldau.broker.rights import GROUP, READ, TOPIC
from moldau.controller.image import ClusterImage, TopicImage
from moldau.coordinator.long_work import chunks
from moldau.core.errors import ErrorCode
from moldau.groups.offsets.classic import CommittedPartition, Committing
from moldau.wire.api import ApiKey
from moldau.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

S = TypeVar("S")

MISSING_GROUP_SINCE = 9
EPOCHS_SINCE = 9
COMMITTED_AT_ONCE_MAX = 200  # to decide and write so many takes some milliseconds; each is a promise of its own
IDS_SINCE = 10


@api(ApiKey.OFFSET_COMMIT, OffsetCommitRequest, versions=(2, 10))
def offset_commit(request: OffsetCommitRequest, context: Context) -> Answer:
    if not context.may(READ, GROUP, request.group_id):
        refusals: list[ErrorCode | None] = [ErrorCode.GROUP_AUTHORIZATION_FAILED]
        refused = Checked([], refusals * sum([len(topic.partitions) for topic in request.topics]))
        return _response(request, refused, iter(()))
    image = context.services.controller.image
    denied = _denied(request, image, context)
    if sum([1 + len(topic.partitions) for topic in request.topics]) > ROWS_MAX:
        return _commit_many(request, image, denied, context)
    return _commit_checked(request, _check(request, image, denied, context.version), context)


def _denied(request: OffsetCommitRequest, image: ClusterImage, context: Context) -> Set[str]:
    """The topics that the client may not read, by name. That an id is of none is told to anybody."""
    if context.version < IDS_SINCE:
        return context.denied(READ, TOPIC, (topic.name for topic in request.topics))
    known = (image.topic_by_id(topic.topic_id) for topic in request.topics)
    return context.denied(READ, TOPIC, (topic.name for topic in known if topic is not None))


async def _commit_many(request: OffsetCommitRequest, image: ClusterImage, denied: Set[str], context: Context) -> Any:
    checked = await in_thread(lambda: _check(request, image, denied, context.version), context)
    if not checked.accepted:
        return await encoded(lambda: _response(request, checked, iter(())), context)
    answer = _commit_checked(request, checked, context)
    return await answer if isinstance(answer, Future) else answer


def _commit_checked(request: OffsetCommitRequest, checked: Checked, context: Context) -> Answer:
    def shape(errors: Iterable[ErrorCode]) -> OffsetCommitResponse:
        return _response(request, checked, iter(errors))

    if not checked.accepted:
        return shape([])
    if len(checked.accepted) <= COMMITTED_AT_ONCE_MAX and len(checked.refusals) <= ROWS_MAX:
        return _commit(request, checked.accepted, shape, context)
    return in_turn(
        chunks(checked.accepted, COMMITTED_AT_ONCE_MAX),
        lambda part: _commit(request, part, list[ErrorCode], context),
        lambda parts: shape(chain.from_iterable(parts)),
        context,
        rows=lambda _: len(checked.refusals),
    )


def _commit(
    request: OffsetCommitRequest,
    partitions: list[CommittedPartition],
    shape: Callable[[list[ErrorCode]], S],
    context: Context,
) -> S | Future[S]:
    committing = Committing(
        group_id=request.group_id,
        member_id=request.member_id,
        generation=request.generation_id_or_member_epoch,
        instance_id=request.group_instance_id,
        retention_ms=request.retention_time_ms,
        partitions=partitions,
        missing_group=(
            ErrorCode.GROUP_ID_NOT_FOUND if context.version >= MISSING_GROUP_SINCE else ErrorCode.ILLEGAL_GENERATION
        ),
        knows_epochs=context.version >= EPOCHS_SINCE,
    )
    return context.services.groups.write(
        request.group_id,
        lambda shard, now_ms: shard.decide_commit(committing, now_ms).shaped(shape),
        lambda error: shape([error] * len(partitions)),
    )


class Checked(NamedTuple):
    """The partitions that exist, and for all of the request in its order what is wrong, or None."""

    accepted: list[CommittedPartition]
    refusals: list[ErrorCode | None]


def _check(request: OffsetCommitRequest, image: ClusterImage, denied: Set[str], version: int) -> Checked:
    checked = Checked([], [])
    for topic in request.topics:
        known = _topic(topic, image, denied, by_id=version >= IDS_SINCE)
        for partition in topic.partitions:
            if isinstance(known, ErrorCode):
                checked.refusals.append(known)
            elif not 0 <= partition.partition_index < len(known.partitions):
                checked.refusals.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                checked.refusals.append(None)
                checked.accepted.append(
                    CommittedPartition(
                        known.name,
                        partition.partition_index,
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        partition.committed_metadata,
                        known.id,
                    )
                )
    return checked


def _topic(
    topic: OffsetCommitRequestTopic, image: ClusterImage, denied: Set[str], *, by_id: bool
) -> TopicImage | ErrorCode:
    known = image.topic_by_id(topic.topic_id) if by_id else image.topics.get(topic.name)
    if denied and (topic.name if known is None else known.name) in denied:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return known or (ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _response(request: OffsetCommitRequest, checked: Checked, errors: Iterator[ErrorCode]) -> OffsetCommitResponse:
    """In the order of the request: the refusals from above, and the coordinator's answers for the rest."""
    refusals = iter(checked.refusals)
    topics = []
    for topic in request.topics:
        partitions = []
        for partition in topic.partitions:
            refusal = next(refusals)
            error = next(errors) if refusal is None else refusal
            partitions.append(
                OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
            )
        topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
    return OffsetCommitResponse(topics=topics)
