"""Who may use a transactional id: InitProducerId hands out a producer id and an epoch that fences everybody before."""

from __future__ import annotations

import msgspec

from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import ProducerId
from moldau.transactions.endings import decide_fence
from moldau.transactions.limits import TransactionLimits
from moldau.transactions.records import TransactionChanged
from moldau.transactions.states import State
from moldau.transactions.transaction import (
    LAST_USABLE_EPOCH,
    TIMEOUT_NEVER_MS,
    ProducerIdAndEpoch,
    ProducerReply,
    Transaction,
    initialised,
)
from moldau.wire.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID


class Initialising(msgspec.Struct, frozen=True, kw_only=True):
    """An InitProducerId request in the coordinator's words."""

    transactional_id: str
    timeout_ms: int
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH
    """With these two a producer says whom it was, to go on after an error instead of fencing somebody unknown."""
    enables_two_phase_commit: bool = False
    keeps_prepared: bool = False

    @property
    def expected(self) -> ProducerIdAndEpoch | None:
        return None if self.producer_id == NO_PRODUCER_ID else ProducerIdAndEpoch(self.producer_id, self.epoch)


def refused(error: ErrorCode) -> Decision[ProducerReply]:
    return Decision.reply_only(ProducerReply(error))


def decide_init_producer_id(
    transaction: Transaction | None,
    request: Initialising,
    *,
    limits: TransactionLimits,
    spare_id: ProducerId | None,
    now_ms: int,
) -> Decision[ProducerReply]:
    """`spare_id` is a producer id that nobody has yet, for an id that is new or whose epochs are used up."""
    error = _error_in(request, limits)
    if error is not ErrorCode.NONE:
        return refused(error)
    if transaction is None:
        if spare_id is None:
            return refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        transaction = Transaction(request.transactional_id, spare_id, updated_ms=now_ms)
    if transaction.is_prepared:
        return refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    expected = request.expected
    if expected is not None and not _is_known(transaction, expected):
        return refused(ErrorCode.PRODUCER_FENCED)
    if transaction.state is State.ONGOING:
        return _decide_interrupt(transaction, expected, limits=limits, spare_id=spare_id, now_ms=now_ms)
    return _decide_next_epoch(transaction, request, spare_id=spare_id, now_ms=now_ms)


def _error_in(request: Initialising, limits: TransactionLimits) -> ErrorCode:
    if (request.producer_id == NO_PRODUCER_ID) != (request.epoch == NO_PRODUCER_EPOCH) or not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if request.enables_two_phase_commit and not limits.allows_two_phase_commit:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if request.keeps_prepared:
        return ErrorCode.UNSUPPORTED_VERSION
    if not request.enables_two_phase_commit and not 0 < request.timeout_ms <= limits.timeout_ms_max:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NONE


def _is_known(transaction: Transaction, expected: ProducerIdAndEpoch) -> bool:
    """The producer of now; or of before, whose epochs were used up and which never heard of its successor.

    An id without an epoch is new or was forgotten, and then there is nobody whom its producer could disturb.
    """
    return (
        transaction.epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == transaction.producer_id
        or (expected.producer_id == transaction.previous_producer_id and expected.epoch >= LAST_USABLE_EPOCH)
    )


def _decide_interrupt(
    transaction: Transaction,
    expected: ProducerIdAndEpoch | None,
    *,
    limits: TransactionLimits,
    spare_id: ProducerId | None,
    now_ms: int,
) -> Decision[ProducerReply]:
    """An open transaction is aborted first, and the client comes again for its epoch.

    Kafka aborts it also for a producer whose epoch is older, and only then tells that one that it is fenced.
    """
    if expected is not None and expected.epoch not in (transaction.epoch, transaction.last_epoch):
        return refused(ErrorCode.PRODUCER_FENCED)
    fence = decide_fence(transaction, limits=limits, spare_id=spare_id, now_ms=now_ms)
    error = ErrorCode.CONCURRENT_TRANSACTIONS if fence.reply is ErrorCode.NONE else fence.reply
    return Decision(fence.records, ProducerReply(error), fence.timers, fence.released)


def _decide_next_epoch(
    transaction: Transaction, request: Initialising, *, spare_id: ProducerId | None, now_ms: int
) -> Decision[ProducerReply]:
    expected = request.expected
    must_rotate = transaction.is_epoch_exhausted and (expected is None or expected.epoch == transaction.epoch)
    if must_rotate:
        if spare_id is None:
            return refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        producer = ProducerIdAndEpoch(spare_id, 0)
        last_epoch = NO_PRODUCER_EPOCH if expected is None else transaction.epoch
    elif expected is None or transaction.epoch in (NO_PRODUCER_EPOCH, expected.epoch):
        producer = ProducerIdAndEpoch(transaction.producer_id, transaction.epoch + 1)
        last_epoch = NO_PRODUCER_EPOCH if expected is None else transaction.epoch
    elif expected.epoch == transaction.last_epoch:
        # The reply to the first attempt was lost. Nobody else can have come since: that would have erased the epoch.
        producer = ProducerIdAndEpoch(transaction.producer_id, transaction.epoch)
        last_epoch = transaction.last_epoch
    else:
        return refused(ErrorCode.PRODUCER_FENCED)
    timeout_ms = TIMEOUT_NEVER_MS if request.enables_two_phase_commit else request.timeout_ms
    after = initialised(transaction, producer, last_epoch=last_epoch, timeout_ms=timeout_ms, now_ms=now_ms)
    return Decision((TransactionChanged(after),), ProducerReply(ErrorCode.NONE, *producer))
