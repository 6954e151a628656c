"""DescribeTransactions: the state of transactional ids, and the partitions of those that are open."""

from __future__ import annotations

from asyncio import Future

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, in_turn, refuse_repetition
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.transactions.shard import TransactionShard
from moldau.transactions.view import describe
from moldau.wire.api import ApiKey
from moldau.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)


@api(ApiKey.DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest, versions=(0, 0))
def describe_transactions(
    request: DescribeTransactionsRequest, context: Context
) -> DescribeTransactionsResponse | Future[DescribeTransactionsResponse | Encoded[DescribeTransactionsResponse]]:
    refuse_repetition(request.transactional_ids)
    return in_turn(
        request.transactional_ids,
        lambda each: _describe(each, context),
        lambda states: DescribeTransactionsResponse(transaction_states=states),
        context,
    )


def _describe(transactional_id: str, context: Context) -> TransactionState | Future[TransactionState]:
    if not transactional_id:
        return describe(transactional_id, None)

    def decide(shard: TransactionShard, _: int) -> Decision[TransactionState]:
        return Decision.reply_only(describe(transactional_id, shard.transactions.get(transactional_id)))

    def failed(error: ErrorCode) -> TransactionState:
        return TransactionState(error_code=error, transactional_id=transactional_id)

    return context.services.transactions.write(transactional_id, decide, failed)
