"""AddPartitionsToTxn, v0 to v5: a transaction is about to write to partitions. They are all added, or none.

v2 tells a fenced producer so; v3 is the last of clients. Brokers speak v4 and v5, which carry many transactions, and
ask with `verify_only` whether partitions are added already.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Mapping

from moldau.broker.answers import together
from moldau.broker.api import api
from moldau.broker.context import Context
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
    return together(
        [_add(only, context)],
        lambda results: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results),
    )


def _add(
    transaction: AddPartitionsToTxnTransaction, context: Context
) -> AddPartitionsToTxnResult | Future[AddPartitionsToTxnResult]:
    named = transaction.transactional_id
    partitions = frozenset(
        TopicPartition(topic.name, index) for topic in transaction.topics for index in topic.partitions
    )
    refused = {each: wrong for each in partitions if (wrong := _problem(each, context)) is not ErrorCode.NONE}
    if refused:
        return _result(named, dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused)
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    transactions = context.services.transactions
    if transaction.verify_only:
        return _result(named, transactions.admit(named, producer, partitions, adds=False))
    error = transactions.write(
        named,
        lambda shard, now_ms: shard.decide_add_partitions(
            named, producer, partitions, client_version=client_version_of(context.version), now_ms=now_ms
        ),
        lambda error: error,
    )

    def shape(errors: list[ErrorCode]) -> AddPartitionsToTxnResult:
        told = error_for_client(errors[0], ApiKey.ADD_PARTITIONS_TO_TXN, context.version)
        return _result(named, dict.fromkeys(partitions, told))

    return together([error], shape)


def _problem(partition: TopicPartition, context: Context) -> ErrorCode:
    if is_internal(partition.topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED  # nobody has the right to write to the coordinators' topics
    topic = context.services.controller.image.topics.get(partition.topic)
    if topic is None or not 0 <= partition.partition < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _result(transactional_id: str, errors: Mapping[TopicPartition, ErrorCode]) -> AddPartitionsToTxnResult:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for partition, error in sorted(errors.items()):
        topics.setdefault(partition.topic, []).append(AddPartitionsToTxnPartitionResult(partition.partition, error))
    return AddPartitionsToTxnResult(
        transactional_id, [AddPartitionsToTxnTopicResult(name, results) for name, results in topics.items()]
    )
