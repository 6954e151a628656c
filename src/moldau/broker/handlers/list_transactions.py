"""ListTransactions, v0 to v2: the transactional ids that this broker coordinates.

v1 filters by how long they are open, v2 by a regular expression.
"""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.core.errors import ApiError, ErrorCode
from moldau.transactions.view import list_transactions_of, listing_of
from moldau.wire.api import ApiKey
from moldau.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


@api(ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest, versions=(0, 2))
def list_transactions(request: ListTransactionsRequest, context: Context) -> ListTransactionsResponse:
    try:
        listing = listing_of(request)
    except ApiError as wrong:
        return ListTransactionsResponse(error_code=wrong.code)
    shards = context.services.transactions.shards()
    if isinstance(shards, ErrorCode):
        return ListTransactionsResponse(error_code=shards)
    now_ms = context.services.clock.now_ms()
    return ListTransactionsResponse(
        unknown_state_filters=list(listing.unknown_states),
        transaction_states=[
            state for shard in shards for state in list_transactions_of(shard.transactions.values(), listing, now_ms)
        ],
    )
