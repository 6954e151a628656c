"""AddPartitionsToTxn, v0 to v5: a transaction is about to write to partitions. They are all added, or none.

v2 tells a fenced producer so; v3 is the last of clients. Brokers speak v4 and v5, which carry many transactions, and
ask with `verify_only` whether partitions are added already.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Mapping, Set

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import ROWS_MAX, in_thread, together
from moldau.broker.rights import TOPIC, TRANSACTIONAL_ID, WRITE
from moldau.controller.image import ClusterImage
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.core.topic_names import is_internal
from moldau.transactions.additions import client_version_of
from moldau.transactions.errors import error_for_client
from moldau.transactions.transaction import ProducerIdAndEpoch
from moldau.wire.api import ApiKey
from moldau.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

BATCHED_SINCE = 4
PARTS = (("transactions", "results_by_transaction"),)


@api(ApiKey.ADD_PARTITIONS_TO_TXN, AddPartitionsToTxnRequest, versions=(0, 5), parts=PARTS)
def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, context: Context
) -> AddPartitionsToTxnResponse | Future[AddPartitionsToTxnResponse]:
    if context.version >= BATCHED_SINCE:
        answers = [_add(each, context) for each in request.transactions]
        return together(answers, lambda results: AddPartitionsToTxnResponse(results_by_transaction=results))
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    if not context.may(WRITE, TRANSACTIONAL_ID, only.transactional_id):
        refused = _refused(only, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=refused.topic_results)
    return together(
        [_add(only, context)],
        lambda results: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results),
    )


def _add(
    transaction: AddPartitionsToTxnTransaction, context: Context
) -> AddPartitionsToTxnResult | Future[AddPartitionsToTxnResult]:
    denied: Set[str] = frozenset()
    if context.version < BATCHED_SINCE:  # later ones are for brokers only
        denied = context.denied(WRITE, TOPIC, (topic.name for topic in transaction.topics))
    if sum([1 + len(topic.partitions) for topic in transaction.topics]) > ROWS_MAX:
        return context.start(_add_many(transaction, denied, context))
    checked = _check(transaction, context.services.controller.image, denied, context.version)
    if isinstance(checked, AddPartitionsToTxnResult):
        return checked
    if transaction.verify_only:
        return together(
            [_verified(transaction, checked, context)], lambda errors: _result(transaction.transactional_id, errors[0])
        )
    return together(
        [_written(transaction, checked, context)], lambda errors: _added(transaction, checked, errors[0], context)
    )


async def _add_many(
    transaction: AddPartitionsToTxnTransaction, denied: Set[str], context: Context
) -> AddPartitionsToTxnResult:
    image = context.services.controller.image
    checked = await in_thread(lambda: _check(transaction, image, denied, context.version), context)
    if isinstance(checked, AddPartitionsToTxnResult):
        return checked
    if transaction.verify_only:
        answer = _verified(transaction, checked, context)
        verified = await answer if isinstance(answer, Future) else answer
        return await in_thread(lambda: _result(transaction.transactional_id, verified), context)
    written = _written(transaction, checked, context)
    error = await written if isinstance(written, Future) else written
    return await in_thread(lambda: _added(transaction, checked, error, context), context)


def _check(
    transaction: AddPartitionsToTxnTransaction, image: ClusterImage, denied: Set[str], version: int
) -> frozenset[TopicPartition] | AddPartitionsToTxnResult:
    """The partitions, or why none of them is added."""
    partitions = frozenset(
        TopicPartition(topic.name, index) for topic in transaction.topics for index in topic.partitions
    )
    refused = {
        each: wrong for each in partitions if (wrong := _problem(each, image, denied, version)) is not ErrorCode.NONE
    }
    if not refused:
        return partitions
    not_attempted = dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
    return _result(transaction.transactional_id, not_attempted | refused)


def _verified(
    transaction: AddPartitionsToTxnTransaction, partitions: frozenset[TopicPartition], context: Context
) -> Mapping[TopicPartition, ErrorCode] | Future[Mapping[TopicPartition, ErrorCode]]:
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    return context.services.transactions.admit(transaction.transactional_id, producer, partitions, adds=False)


def _written(
    transaction: AddPartitionsToTxnTransaction, partitions: frozenset[TopicPartition], context: Context
) -> ErrorCode | Future[ErrorCode]:
    named = transaction.transactional_id
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    return context.services.transactions.write(
        named,
        lambda shard, now_ms: shard.decide_add_partitions(
            named, producer, partitions, client_version=client_version_of(context.version), now_ms=now_ms
        ),
        lambda error: error,
    )


def _added(
    transaction: AddPartitionsToTxnTransaction,
    partitions: frozenset[TopicPartition],
    error: ErrorCode,
    context: Context,
) -> AddPartitionsToTxnResult:
    told = error_for_client(error, ApiKey.ADD_PARTITIONS_TO_TXN, context.version)
    return _result(transaction.transactional_id, dict.fromkeys(partitions, told))


def _problem(partition: TopicPartition, image: ClusterImage, denied: Set[str], version: int) -> ErrorCode:
    if partition.topic in denied:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if version < BATCHED_SINCE and is_internal(partition.topic):
        # No client has the right to write to the coordinators' topics. A groups' coordinator has.
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = image.topics.get(partition.topic)
    if topic is None or not 0 <= partition.partition < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _refused(transaction: AddPartitionsToTxnTransaction, error: ErrorCode) -> AddPartitionsToTxnResult:
    partitions = (TopicPartition(topic.name, index) for topic in transaction.topics for index in topic.partitions)
    return _result(transaction.transactional_id, dict.fromkeys(partitions, error))


def _result(transactional_id: str, errors: Mapping[TopicPartition, ErrorCode]) -> AddPartitionsToTxnResult:
    topics: dict[str, dict[int, ErrorCode]] = {}
    for (topic, index), error in errors.items():  # one sort of all would hold the interpreter's lock for long
        topics.setdefault(topic, {})[index] = error
    return AddPartitionsToTxnResult(
        transactional_id,
        [
            AddPartitionsToTxnTopicResult(
                name, [AddPartitionsToTxnPartitionResult(index, of[index]) for index in sorted(of)]
            )
            for name, of in sorted(topics.items())
        ],
    )
