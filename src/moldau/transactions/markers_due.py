"""Markers: the control record that tells each partition how a transaction ended.

They are due from the moment that the outcome is committed to the coordinator's log until they are all written. Writing
one twice does no harm, so whoever takes over begins again with all of them.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.log.producers.end_transaction_marker import encode_marker
from moldau.transactions.states import State
from moldau.transactions.transaction import ProducerIdAndEpoch, Transaction
from moldau.wire.batch import CONTROL, TRANSACTIONAL, Record, build_batch


class MarkersDue(msgspec.Struct, frozen=True):
    transactional_id: str
    producer: ProducerIdAndEpoch
    is_commit: bool
    partitions: frozenset[TopicPartition]
    transaction_version: int


def markers_due(transaction: Transaction) -> MarkersDue | None:
    if not transaction.is_prepared:
        return None
    return MarkersDue(
        transaction.transactional_id,
        ProducerIdAndEpoch(transaction.producer_id, transaction.epoch),
        transaction.state is State.PREPARE_COMMIT,
        transaction.partitions,
        transaction.client_version,
    )


def build_marker(producer: ProducerIdAndEpoch, *, is_commit: bool, coordinator_epoch: int, now_ms: int) -> bytearray:
    """A control batch with one record, to be stamped with offset and leader epoch by the log that it goes to."""
    key, value = encode_marker(is_commit=is_commit, coordinator_epoch=coordinator_epoch)
    return build_batch(
        [Record(0, now_ms, key, value)],
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        attributes=TRANSACTIONAL | CONTROL,
    )


class Outcome(Enum):
    DONE = "the partition needs no more"
    RETRY = "its leader is not ready, or another broker"
    GIVE_UP = "another coordinator has taken over"


_DONE = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT})
_GIVE_UP = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


def outcome_of(error: ErrorCode) -> Outcome:
    """What a leader's answer for one partition means. A topic that was deleted is unknown to the caller's metadata too,
    which then drops the partition; an error that nobody foresaw is tried again rather than a transaction lost.
    """
    if error in _DONE:
        return Outcome.DONE
    return Outcome.GIVE_UP if error in _GIVE_UP else Outcome.RETRY
