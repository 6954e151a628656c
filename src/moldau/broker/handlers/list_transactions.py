"""ListTransactions, v0 to v2: the transactional ids that this broker coordinates.

v1 filters by how long they are open, v2 by a regular expression.
"""

from __future__ import annotations

from asyncio import Future
from typing import Any

from moldau.broker.api import Answer, api
from moldau.broker.context import Context
from moldau.broker.requests.answers import ROWS_MAX, Encoded, in_thread, in_turn
from moldau.broker.rights import DESCRIBE, TRANSACTIONAL_ID
from moldau.coordinator.long_work import chunks
from moldau.core.errors import ApiError, ErrorCode
from moldau.transactions.transaction import Transaction
from moldau.transactions.view import Listing, list_transactions_of, listing_of
from moldau.wire.api import ApiKey
from moldau.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse, TransactionState


@api(ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest, versions=(0, 2))
def list_transactions(request: ListTransactionsRequest, context: Context) -> Answer:
    if len(request.state_filters) + len(request.producer_id_filters) > ROWS_MAX:
        return _list_filtered(request, context)
    try:
        return _list(listing_of(request), context)
    except ApiError as wrong:
        return ListTransactionsResponse(error_code=wrong.code)


async def _list_filtered(request: ListTransactionsRequest, context: Context) -> Any:
    try:
        listing = await in_thread(lambda: listing_of(request), context)
    except ApiError as wrong:
        return ListTransactionsResponse(error_code=wrong.code)
    answer = _list(listing, context)
    return await answer if isinstance(answer, Future) else answer


def _list(
    listing: Listing, context: Context
) -> ListTransactionsResponse | Future[ListTransactionsResponse | Encoded[ListTransactionsResponse]]:
    shards = context.services.transactions.shards()
    if isinstance(shards, ErrorCode):
        return ListTransactionsResponse(error_code=shards)
    now_ms = context.services.clock.now_ms()

    def shape(found: list[list[TransactionState]]) -> ListTransactionsResponse:
        states = [state for part in found for state in part]
        return ListTransactionsResponse(unknown_state_filters=list(listing.unknown_states), transaction_states=states)

    transactions = [transaction for shard in shards for transaction in shard.transactions.values()]

    def list_visible(part: list[Transaction]) -> list[TransactionState]:
        listed = list(list_transactions_of(part, listing, now_ms))
        denied = context.denied(DESCRIBE, TRANSACTIONAL_ID, (state.transactional_id for state in listed))
        return [state for state in listed if state.transactional_id not in denied] if denied else listed

    return in_turn(
        chunks(transactions, 100),
        list_visible,
        shape,
        context,
        rows=lambda found: sum(map(len, found)),
    )
