"""DescribeTransactions: the state of transactional ids, and the partitions of those that are open."""

from __future__ import annotations

from asyncio import Future

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, in_turn, refuse_repetition
from moldau.broker.rights import DESCRIBE, TOPIC, TRANSACTIONAL_ID
from moldau.coordinator.long_work import in_slices
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.limits import LARGE_REQUEST_PART
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
        return Decision.reply_only(describe(transactional_id, shard.transactions.get(transactional_id)))

    def failed(error: ErrorCode) -> TransactionState:
        return TransactionState(error_code=error, transactional_id=transactional_id)

    answer = context.services.transactions.write(transactional_id, decide, failed)
    if context.services.authorization is None:
        return answer
    if isinstance(answer, Future) or len(answer.topics) > LARGE_REQUEST_PART:
        return context.start(_judged(answer, context))
    answer.topics = [topic for topic in answer.topics if context.may(DESCRIBE, TOPIC, topic.topic)]
    return answer


async def _judged(answer: TransactionState | Future[TransactionState], context: Context) -> TransactionState:
    """Without the topics that the client may not see."""
    state = await answer if isinstance(answer, Future) else answer
    topics = in_slices(state.topics, context.services.long_work)
    state.topics = [topic async for topic in topics if context.may(DESCRIBE, TOPIC, topic.topic)]
    return state
