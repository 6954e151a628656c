"""TxnOffsetCommit, v0 to v5: offsets of a group that count when their transaction is committed.

v3 names the member, so that one of an old generation is refused. v5, of the second protocol, makes the group part of
the transaction by itself; before that AddOffsetsToTxn has done it.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Iterator, Set
from itertools import chain
from typing import Any

from moldau.broker.api import Answer, api
from moldau.broker.context import Context
from moldau.broker.producing.transaction_verification import ADMISSION_S_MAX, admission
from moldau.broker.requests.answers import ROWS_MAX, encoded, in_thread, in_turn
from moldau.broker.rights import GROUP, READ, TOPIC, TRANSACTIONAL_ID, WRITE
from moldau.controller.image import ClusterImage
from moldau.coordinator.journal import TransactionalProducer
from moldau.coordinator.long_work import chunks
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.core.topic_names import GROUP_METADATA_TOPIC
from moldau.groups.offsets.classic import CommittedPartition, Committing
from moldau.log.producers.producer_state import ProducerStates
from moldau.replication.partition import Partition
from moldau.transactions.transaction import ProducerIdAndEpoch
from moldau.wire.api import ApiKey
from moldau.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

LOADING_IS_KNOWN_SINCE = 2
ABORTABLE_IS_KNOWN_SINCE = 4
ADDS_SINCE = 5
COMMITTED_AT_ONCE_MAX = 200  # each part is admitted anew, for the transaction may end between two


@api(ApiKey.TXN_OFFSET_COMMIT, TxnOffsetCommitRequest, versions=(0, 5))
def txn_offset_commit(request: TxnOffsetCommitRequest, context: Context) -> Answer:
    if not context.may(WRITE, TRANSACTIONAL_ID, request.transactional_id):
        return _response(request, {}, other=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not context.may(READ, GROUP, request.group_id):
        return _response(request, {}, other=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    denied = context.denied(READ, TOPIC, (topic.name for topic in request.topics))
    image = context.services.controller.image
    if sum([1 + len(topic.partitions) for topic in request.topics]) > ROWS_MAX:
        return _commit_many(request, image, denied, context)
    return _commit_accepted(request, list(_accepted(request, image, denied)), denied, context)


async def _commit_many(request: TxnOffsetCommitRequest, image: ClusterImage, denied: Set[str], context: Context) -> Any:
    accepted = await in_thread(lambda: list(_accepted(request, image, denied)), context)
    if not accepted:
        return await encoded(lambda: _response(request, {}, denied), context)
    answer = _commit_accepted(request, accepted, denied, context)
    return await answer if isinstance(answer, Future) else answer


def _commit_accepted(
    request: TxnOffsetCommitRequest, accepted: list[CommittedPartition], denied: Set[str], context: Context
) -> Answer:
    def shape(answers: list[list[ErrorCode]]) -> TxnOffsetCommitResponse:
        places = [(each.topic, each.partition) for each in accepted]
        told = [_told(error, context.version) for error in chain.from_iterable(answers)]
        return _response(request, dict(zip(places, told, strict=True)), denied)

    return in_turn(
        chunks(accepted, COMMITTED_AT_ONCE_MAX),
        lambda part: _commit(request, part, context),
        shape,
        context,
        rows=lambda _: sum([1 + len(topic.partitions) for topic in request.topics]),
    )


def _accepted(request: TxnOffsetCommitRequest, image: ClusterImage, denied: Set[str]) -> Iterator[CommittedPartition]:
    """What is of a partition that exists, and that the client may read."""
    for topic in request.topics:
        known = None if topic.name in denied else image.topics.get(topic.name)
        for each in topic.partitions:
            if known is not None and 0 <= each.partition_index < len(known.partitions):
                yield CommittedPartition(
                    topic.name,
                    each.partition_index,
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata,
                    known.id,
                )


def _commit(
    request: TxnOffsetCommitRequest, accepted: list[CommittedPartition], context: Context
) -> list[ErrorCode] | Future[list[ErrorCode]]:
    if not request.group_id:
        return [ErrorCode.INVALID_GROUP_ID] * len(accepted)
    where = TopicPartition(GROUP_METADATA_TOPIC, context.services.groups.index_of(request.group_id))
    partition = context.services.partitions.get(*where)
    if partition is None or not partition.is_leader:
        return [ErrorCode.NOT_COORDINATOR] * len(accepted)
    answer = _admission(request, partition, context)
    if isinstance(answer, Future):
        producers = partition.log.producers
        guard = producers.guard(request.producer_id)
        return context.start(
            _commit_admitted(request, accepted, answer, context=context, where=where, producers=producers, guard=guard)
        )
    return _commit_now(request, accepted, answer, context)


async def _commit_admitted(
    request: TxnOffsetCommitRequest,
    accepted: list[CommittedPartition],
    answer: Future[ErrorCode],
    *,
    context: Context,
    where: TopicPartition,
    producers: ProducerStates,
    guard: object,
) -> list[ErrorCode]:
    """As soon as the coordinator has answered, unless the transaction ended before that was heard here."""
    try:
        await asyncio.wait([answer], timeout=ADMISSION_S_MAX)
        error = answer.result() if answer.done() else ErrorCode.COORDINATOR_NOT_AVAILABLE
        partition = context.services.partitions.get(*where)  # which may have been made anew
        if error is ErrorCode.NONE and (partition is None or not partition.log.producers.holds(guard)):
            error = ErrorCode.INVALID_TXN_STATE
        committed = _commit_now(request, accepted, error, context)
    finally:
        producers.release(guard)
    return await committed if isinstance(committed, Future) else committed


def _commit_now(
    request: TxnOffsetCommitRequest, accepted: list[CommittedPartition], error: ErrorCode, context: Context
) -> list[ErrorCode] | Future[list[ErrorCode]]:
    if error is not ErrorCode.NONE:
        return [error] * len(accepted)
    committing = Committing(
        group_id=request.group_id,
        member_id=request.member_id,
        generation=request.generation_id,
        instance_id=request.group_instance_id,
        partitions=accepted,
    )
    producer = TransactionalProducer(request.producer_id, request.producer_epoch)
    return context.services.groups.commit_in_transaction(committing, producer)


def _admission(
    request: TxnOffsetCommitRequest, partition: Partition, context: Context
) -> ErrorCode | Future[ErrorCode]:
    if partition.log.producers.is_open(request.producer_id, request.producer_epoch):
        return ErrorCode.NONE
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    adds = context.version >= ADDS_SINCE
    where = TopicPartition(partition.topic, partition.index)
    return admission(context.services, request.transactional_id, producer, where, adds=adds)


def _told(error: ErrorCode, version: int) -> ErrorCode:
    """Errors in the words of clients that were written before them."""
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < LOADING_IS_KNOWN_SINCE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_IS_KNOWN_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    return error


def _response(
    request: TxnOffsetCommitRequest,
    errors: dict[tuple[str, int], ErrorCode],
    denied: Set[str] = frozenset(),
    *,
    other: ErrorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
) -> TxnOffsetCommitResponse:
    """`other` is what is wrong with partitions that have no error of their own."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [
                    TxnOffsetCommitResponsePartition(
                        each.partition_index,
                        ErrorCode.TOPIC_AUTHORIZATION_FAILED
                        if topic.name in denied
                        else errors.get((topic.name, each.partition_index), other),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
