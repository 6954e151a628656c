"""What ListTransactions and DescribeTransactions show."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

import msgspec

from moldau.core.errors import ApiError, ErrorCode
from moldau.core.patterns import CompiledPattern, InvalidPattern, compile_pattern
from moldau.transactions.states import LABELS, State
from moldau.transactions.transaction import Transaction
from moldau.wire.messages import describe_transactions, list_transactions

_BY_LABEL = MappingProxyType({label: state for state, label in LABELS.items()})


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """Which transactional ids to list; what is empty, or a negative duration, leaves out nothing."""

    states: frozenset[State] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    duration_ms_min: int = -1
    pattern: CompiledPattern | None = None
    unknown_states: tuple[str, ...] = ()

    def includes(self, transaction: Transaction, now_ms: int) -> bool:
        if transaction.state is State.DEAD:
            return False
        if self.producer_ids and transaction.producer_id not in self.producer_ids:
            return False
        if (self.states or self.unknown_states) and transaction.state not in self.states:
            return False
        if self.duration_ms_min >= 0 and now_ms - transaction.started_ms <= self.duration_ms_min:
            return False
        return self.pattern is None or self.pattern.matches(transaction.transactional_id)


def listing_of(request: list_transactions.ListTransactionsRequest) -> Listing:
    """Raises ApiError for a pattern that is none."""
    wanted = dict.fromkeys(request.state_filters)
    return Listing(
        states=frozenset(_BY_LABEL[name] for name in wanted if name in _BY_LABEL),
        unknown_states=tuple(name for name in wanted if name not in _BY_LABEL),
        producer_ids=frozenset(request.producer_id_filters),
        duration_ms_min=request.duration_filter,
        pattern=_compile(request.transactional_id_pattern) if request.transactional_id_pattern else None,
    )


def _compile(pattern: str) -> CompiledPattern:
    try:
        return compile_pattern(pattern)
    except InvalidPattern as wrong:
        message = f"Transaction ID pattern `{pattern}` is not a valid regular expression: {wrong}."
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from None


def list_transactions_of(
    transactions: Iterable[Transaction], listing: Listing, now_ms: int
) -> list[list_transactions.TransactionState]:
    return [
        list_transactions.TransactionState(each.transactional_id, each.producer_id, each.state.label)
        for each in transactions
        if listing.includes(each, now_ms)
    ]


def describe(transactional_id: str, transaction: Transaction | None) -> describe_transactions.TransactionState:
    if not transactional_id:
        return describe_transactions.TransactionState(error_code=ErrorCode.INVALID_REQUEST)
    if transaction is None or transaction.state is State.DEAD:
        error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        return describe_transactions.TransactionState(error_code=error, transactional_id=transactional_id)
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(partition)
    return describe_transactions.TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.state.label,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        topics=[describe_transactions.TopicData(topic, numbers) for topic, numbers in topics.items()],
    )
