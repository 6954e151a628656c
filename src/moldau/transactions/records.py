"""Facts about transactional ids, and their bytes in `__transaction_state`."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import TypeAlias

import msgspec

from moldau.coordinator.journal import CoordinatorRecord
from moldau.core.errors import ProtocolViolation
from moldau.core.ids import ProducerId, TopicPartition
from moldau.transactions.schemas import PartitionsSchema, TransactionLogKey, TransactionLogValue
from moldau.transactions.states import State
from moldau.transactions.transaction import Transaction
from moldau.wire.codec import decode, encode

_SHORT = Struct(">h")
_KEY_KIND = _SHORT.pack(TransactionLogKey.API_KEY)
_FIRST_VERSION_WITH_TAGS = 1  # of the feature, and of the value


class TransactionChanged(msgspec.Struct, frozen=True):
    transaction: Transaction


class TransactionForgotten(msgspec.Struct, frozen=True):
    transactional_id: str


Fact: TypeAlias = TransactionChanged | TransactionForgotten


def encode_fact(fact: Fact, transaction_version: int) -> CoordinatorRecord:
    """Key and value of a log record, as a cluster at this level of the feature `transaction.version` writes them."""
    if isinstance(fact, TransactionForgotten):
        return encode_key(fact.transactional_id), None
    transaction = fact.transaction
    version = 1 if transaction_version >= _FIRST_VERSION_WITH_TAGS else 0
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.value,
        transaction_partitions=None if transaction.state is State.EMPTY else _by_topic(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
    )
    return encode_key(transaction.transactional_id), _SHORT.pack(version) + encode(value, version)


def encode_key(transactional_id: str) -> bytes:
    return _KEY_KIND + encode(TransactionLogKey(transactional_id), 0)


def decode_fact(key: memoryview, value: memoryview | None) -> Fact | None:
    """The fact that a log record states; None for a kind that we don't know. ProtocolViolation if it is damaged."""
    if _short(key) != TransactionLogKey.API_KEY:
        return None
    named, _ = decode(TransactionLogKey, 0, key, _SHORT.size)
    if value is None:
        return TransactionForgotten(named.transactional_id)
    return TransactionChanged(_read_transaction(named.transactional_id, value))


def _read_transaction(transactional_id: str, value: memoryview) -> Transaction:
    version = _short(value)
    oldest, newest = TransactionLogValue.VERSIONS
    if not oldest <= version <= newest:
        raise ProtocolViolation(f"transactional id {transactional_id} is in version {version}; allowed to {newest}")
    read, _ = decode(TransactionLogValue, version, value, _SHORT.size)
    return Transaction(
        transactional_id=transactional_id,
        producer_id=ProducerId(read.producer_id),
        epoch=read.producer_epoch,
        previous_producer_id=ProducerId(read.previous_producer_id),
        next_producer_id=ProducerId(read.next_producer_id),
        timeout_ms=read.transaction_timeout_ms,
        state=_state(read.transaction_status),
        partitions=frozenset(
            TopicPartition(topic.topic, partition)
            for topic in read.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        started_ms=read.transaction_start_timestamp_ms,
        updated_ms=read.transaction_last_update_timestamp_ms,
        client_version=read.client_transaction_version,
    )


def _state(number: int) -> State:
    try:
        return State(number)
    except ValueError:
        raise ProtocolViolation(f"{number} is no state of a transaction") from None


def _by_topic(partitions: Iterable[TopicPartition]) -> list[PartitionsSchema]:
    """Sorted, so that the same fact always has the same bytes."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return [PartitionsSchema(topic, sorted(numbers)) for topic, numbers in sorted(topics.items())]


def _short(view: memoryview) -> int:
    if len(view) < _SHORT.size:
        raise ProtocolViolation(f"a record of {len(view)} bytes has no version")
    number: int = _SHORT.unpack_from(view)[0]
    return number
