"""EndTxn, v0 to v5: commit or abort. The answer comes when the outcome is certain; the markers follow it.

v2 tells a fenced producer so; with v5, of the second protocol, every transaction has an epoch of its own, and the
answer names the producer that begins the next one.
"""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.rights import TRANSACTIONAL_ID, WRITE
from moldau.core.errors import ErrorCode
from moldau.transactions.endings import Ending
from moldau.transactions.errors import error_for_client
from moldau.wire.api import ApiKey
from moldau.wire.messages.end_txn import EndTxnRequest, EndTxnResponse


@api(ApiKey.END_TXN, EndTxnRequest, versions=(0, 5))
async def end_txn(request: EndTxnRequest, context: Context) -> EndTxnResponse:
    if not context.may(WRITE, TRANSACTIONAL_ID, request.transactional_id):
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    reply = await context.services.transactions.end_txn(
        Ending(
            transactional_id=request.transactional_id,
            producer_id=request.producer_id,
            epoch=request.producer_epoch,
            is_commit=request.committed,
            api_version=context.version,
        )
    )
    error = error_for_client(reply.error, ApiKey.END_TXN, context.version)
    return EndTxnResponse(error_code=error, producer_id=reply.producer_id, producer_epoch=reply.epoch)
