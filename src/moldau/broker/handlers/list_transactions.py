"""ListTransactions, v0 to v2: the transactional ids that this broker coordinates.

v1 filters by how long they are open, v2 by a regular expression.
"""

from __future__ import annotations

from asyncio import Future

from moldau.broker.answers import Encoded, in_turn
from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.coordinator.long_work import chunks
from moldau.core.errors import ApiError, ErrorCode
from moldau.transactions.view import list_transactions_of, listing_of
from moldau.wire.api import ApiKey
from moldau.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse, TransactionState


@api(ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest, versions=(0, 2))
def list_transactions(
    request: ListTransactionsRequest, context: Context
) -> ListTransactionsResponse | Future[ListTransactionsResponse | Encoded[ListTransactionsResponse]]:
    try:
        listing = listing_of(request)
    except ApiError as wrong:
        return ListTransactionsResponse(error_code=wrong.code)
    shards = context.services.transactions.shards()
    if isinstance(shards, ErrorCode):
        return ListTransactionsResponse(error_code=shards)
    now_ms = context.services.clock.now_ms()

    def shape(found: list[list[TransactionState]]) -> ListTransactionsResponse:
        states = [state for part in found for state in part]
        return ListTransactionsResponse(unknown_state_filters=list(listing.unknown_states), transaction_states=states)

    transactions = [transaction for shard in shards for transaction in shard.transactions.values()]
    return in_turn(
        chunks(transactions, 100),
        lambda part: list(list_transactions_of(part, listing, now_ms)),
        shape,
        context,
        rows=lambda found: sum(map(len, found)),
    )
