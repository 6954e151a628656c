"""Which partitions a transaction writes to: every one must be known before its first record, to get its marker."""

from __future__ import annotations

from collections.abc import Mapping, Set

from moldau.core.decision import Decision, Timer
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.transactions.records import TransactionChanged
from moldau.transactions.states import State
from moldau.transactions.transaction import (
    FIRST_PROTOCOL,
    SECOND_PROTOCOL,
    ProducerIdAndEpoch,
    Transaction,
    timeout_key,
    with_partitions,
)

# Of AddPartitionsToTxn. Brokers speak the later ones, on behalf of clients of the second protocol.
LAST_CLIENT_VERSION = 3


def client_version_of(api_version: int) -> int:
    """The protocol of the client behind an AddPartitionsToTxn request."""
    return SECOND_PROTOCOL if api_version > LAST_CLIENT_VERSION else FIRST_PROTOCOL


def decide_add_partitions(
    transaction: Transaction | None,
    producer: ProducerIdAndEpoch,
    partitions: Set[TopicPartition],
    *,
    client_version: int,
    now_ms: int,
) -> Decision[ErrorCode]:
    if transaction is None:
        return Decision.reply_only(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.is_prepared:
        return Decision.reply_only(ErrorCode.CONCURRENT_TRANSACTIONS)
    error = error_of(transaction, producer)
    is_open = transaction.state is State.ONGOING
    if error is not ErrorCode.NONE or (is_open and partitions <= transaction.partitions):
        return Decision.reply_only(error)
    after = with_partitions(transaction, partitions, client_version=client_version, now_ms=now_ms)
    timers = () if is_open else (Timer(timeout_key(after.transactional_id), after.deadline_ms),)
    return Decision((TransactionChanged(after),), ErrorCode.NONE, timers)


def verify_partitions(
    transaction: Transaction | None, producer: ProducerIdAndEpoch, partitions: Set[TopicPartition]
) -> Mapping[TopicPartition, ErrorCode]:
    """Whether a producer that writes to partitions has told of them; changes nothing."""
    error = ErrorCode.INVALID_PRODUCER_ID_MAPPING if transaction is None else error_of(transaction, producer)
    if error is ErrorCode.NONE and transaction is not None and transaction.is_prepared:
        error = ErrorCode.CONCURRENT_TRANSACTIONS
    if error is not ErrorCode.NONE or transaction is None:
        return dict.fromkeys(partitions, error)
    return {
        each: ErrorCode.NONE if each in transaction.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for each in partitions
    }


def error_of(transaction: Transaction, producer: ProducerIdAndEpoch) -> ErrorCode:
    if producer.producer_id != transaction.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.NONE if producer.epoch == transaction.epoch else ErrorCode.PRODUCER_FENCED
