"""How a transaction ends: by its producer, by a time-out, by another producer; and when it has ended.

In the first protocol a request with the current epoch is the same request again if the outcome is the same. In the
second one the epoch rose with the end, so the epoch before is the same request again, and the current one is about the
next transaction, of which the coordinator may not have heard.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import TypeVar

import msgspec

from moldau.core.decision import Decision, Released, Timer
from moldau.core.errors import ErrorCode
from moldau.core.ids import ProducerId
from moldau.transactions.limits import TransactionLimits
from moldau.transactions.records import TransactionChanged
from moldau.transactions.states import Event, State
from moldau.transactions.transaction import (
    FIRST_PROTOCOL,
    LAST_USABLE_EPOCH,
    MARKERS,
    SECOND_PROTOCOL,
    ProducerIdAndEpoch,
    ProducerReply,
    Transaction,
    completed,
    ended_by_first_protocol,
    ended_by_second_protocol,
    fenced,
    timeout_key,
)
from moldau.wire.batch import NO_PRODUCER_ID

Reply = TypeVar("Reply")

FIRST_VERSION_OF_SECOND_PROTOCOL = 5  # of EndTxn


class Verdict(Enum):
    END = "the transaction ends now"
    AGAIN = "it has ended so already"
    WRONG = "it can't end so"


Answers = Mapping[tuple[State, Event], Verdict]

# What is not in a table is wrong in that state.
FIRST_PROTOCOL_ANSWERS: Answers = MappingProxyType(
    {
        (State.ONGOING, Event.COMMITTED): Verdict.END,
        (State.ONGOING, Event.ABORTED): Verdict.END,
        (State.COMPLETE_COMMIT, Event.COMMITTED): Verdict.AGAIN,
        (State.COMPLETE_ABORT, Event.ABORTED): Verdict.AGAIN,
    }
)
SECOND_PROTOCOL_ANSWERS: Answers = MappingProxyType(
    {
        (State.ONGOING, Event.COMMITTED): Verdict.END,
        (State.ONGOING, Event.ABORTED): Verdict.END,
        (State.EMPTY, Event.ABORTED): Verdict.END,
        (State.COMPLETE_COMMIT, Event.ABORTED): Verdict.END,
        (State.COMPLETE_ABORT, Event.ABORTED): Verdict.END,
    }
)
REPEATED_ANSWERS: Answers = MappingProxyType(
    {
        (State.COMPLETE_COMMIT, Event.COMMITTED): Verdict.AGAIN,
        (State.COMPLETE_ABORT, Event.ABORTED): Verdict.AGAIN,
    }
)


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """An EndTxn request in the coordinator's words."""

    transactional_id: str
    producer_id: int
    epoch: int
    is_commit: bool
    api_version: int

    @property
    def event(self) -> Event:
        return Event.COMMITTED if self.is_commit else Event.ABORTED

    @property
    def client_version(self) -> int:
        is_second = self.api_version >= FIRST_VERSION_OF_SECOND_PROTOCOL
        return SECOND_PROTOCOL if is_second else FIRST_PROTOCOL


def decide_end_txn(
    transaction: Transaction | None, request: Ending, *, spare_id: ProducerId | None, now_ms: int
) -> Decision[ProducerReply]:
    """`spare_id` is a producer id that nobody has yet, for the moment when the epochs of the old one are used up."""
    if not request.transactional_id:
        return _refused(ErrorCode.INVALID_REQUEST)
    if transaction is None:
        return _refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if request.client_version == FIRST_PROTOCOL:
        return _decide_end_first(transaction, request, now_ms)
    return _decide_end_second(transaction, request, spare_id=spare_id, now_ms=now_ms)


def _decide_end_first(transaction: Transaction, request: Ending, now_ms: int) -> Decision[ProducerReply]:
    if request.producer_id != transaction.producer_id:
        return _refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if request.epoch != transaction.epoch:
        return _refused(ErrorCode.PRODUCER_FENCED)
    if transaction.is_prepared:
        return _refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    verdict = FIRST_PROTOCOL_ANSWERS.get((transaction.state, request.event), Verdict.WRONG)
    if verdict is Verdict.WRONG:
        return _refused(ErrorCode.INVALID_TXN_STATE)
    reply = ProducerReply(ErrorCode.NONE)
    if verdict is Verdict.AGAIN:
        return Decision.reply_only(reply)
    return _ended(ended_by_first_protocol(transaction, request.event, now_ms), reply)


def _decide_end_second(
    transaction: Transaction, request: Ending, *, spare_id: ProducerId | None, now_ms: int
) -> Decision[ProducerReply]:
    if transaction.is_prepared:
        return _refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    is_repeated = _is_repeated(transaction, request)
    if request.producer_id != transaction.producer_id and not is_repeated:
        return _refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if not is_repeated and request.epoch != transaction.epoch:
        return _refused(ErrorCode.PRODUCER_FENCED)
    answers = REPEATED_ANSWERS if is_repeated else SECOND_PROTOCOL_ANSWERS
    verdict = answers.get((transaction.state, request.event), Verdict.WRONG)
    if verdict is Verdict.WRONG:
        return _refused(ErrorCode.INVALID_TXN_STATE)
    if verdict is Verdict.AGAIN:
        return Decision.reply_only(ProducerReply(ErrorCode.NONE, *transaction.successor))
    if transaction.is_epoch_exhausted and spare_id is None:
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    after = ended_by_second_protocol(
        transaction,
        request.event,
        next_producer_id=_next_id(transaction, spare_id),
        client_version=request.client_version,
        now_ms=now_ms,
    )
    return _ended(after, ProducerReply(ErrorCode.NONE, *after.successor))


def _is_repeated(transaction: Transaction, request: Ending) -> bool:
    """The epoch is the one before the end, or the last of the producer id before."""
    if transaction.state not in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT):
        return False
    if request.producer_id == transaction.producer_id:
        return request.epoch + 1 == transaction.epoch
    was_last = request.producer_id == transaction.previous_producer_id and request.epoch == LAST_USABLE_EPOCH
    return was_last and transaction.epoch == 0


def decide_fence(
    transaction: Transaction, *, limits: TransactionLimits, spare_id: ProducerId | None, now_ms: int
) -> Decision[ErrorCode]:
    """Abort an open transaction with an epoch that its producer does not have."""
    version = limits.transaction_version
    if version >= SECOND_PROTOCOL and transaction.is_epoch_exhausted and spare_id is None:
        return Decision.reply_only(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    after = fenced(transaction, server_version=version, next_producer_id=_next_id(transaction, spare_id), now_ms=now_ms)
    return _ended(after, ErrorCode.NONE)


def decide_markers_written(
    transaction: Transaction | None, producer: ProducerIdAndEpoch, *, is_commit: bool, now_ms: int
) -> Decision[ErrorCode]:
    """All partitions have the markers that this producer's transaction was due."""
    if transaction is None or producer.producer_id != transaction.producer_id:
        return Decision.reply_only(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if producer.epoch != transaction.epoch:
        return Decision.reply_only(ErrorCode.PRODUCER_FENCED)
    if transaction.state is not (State.PREPARE_COMMIT if is_commit else State.PREPARE_ABORT):
        return Decision.reply_only(ErrorCode.INVALID_TXN_STATE)
    return Decision((TransactionChanged(completed(transaction, now_ms)),), ErrorCode.NONE)


def _next_id(transaction: Transaction, spare_id: ProducerId | None) -> ProducerId:
    return spare_id if transaction.is_epoch_exhausted and spare_id is not None else NO_PRODUCER_ID


def _ended(after: Transaction, reply: Reply) -> Decision[Reply]:
    """Whoever writes markers is woken, and may write these as soon as the outcome is committed."""
    no_timeout = Timer(timeout_key(after.transactional_id), None)
    return Decision((TransactionChanged(after),), reply, (no_timeout,), (Released(MARKERS, ()),))


def _refused(error: ErrorCode) -> Decision[ProducerReply]:
    return Decision.reply_only(ProducerReply(error))
