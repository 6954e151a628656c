"""DescribeTransactions: the state of transactional ids, and the partitions of those that are open."""

from __future__ import annotations

from asyncio import Future

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, in_turn, refuse_repetition
from moldau.broker.rights import DESCRIBE, TOPIC, TRANSACTIONAL_ID
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
    if not context.may(DESCRIBE, TRANSACTIONAL_ID, transactional_id):
        return TransactionState(
            error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, transactional_id=transactional_id
        )
    if not transactional_id:
        return describe(transactional_id, None)

    def decide(shard: TransactionShard, _: int) -> Decision[TransactionState]:
        state = describe(transactional_id, shard.transactions.get(transactional_id))
        denied = context.denied(DESCRIBE, TOPIC, (topic.topic for topic in state.topics))
        if denied:
            state.topics = [topic for topic in state.topics if topic.topic not in denied]
        return Decision.reply_only(state)

    def failed(error: ErrorCode) -> TransactionState:
        return TransactionState(error_code=error, transactional_id=transactional_id)

    return context.services.transactions.write(transactional_id, decide, failed)
