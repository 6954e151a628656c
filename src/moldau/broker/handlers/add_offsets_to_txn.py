"""AddOffsetsToTxn, v0 to v4: a transaction is about to commit offsets of a group. v2 tells a fenced producer so."""

from __future__ import annotations

from asyncio import Future

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import together
from moldau.broker.rights import GROUP, READ, TRANSACTIONAL_ID, WRITE
from moldau.core.errors import ErrorCode
from moldau.transactions.errors import error_for_client
from moldau.transactions.transaction import ProducerIdAndEpoch
from moldau.wire.api import ApiKey
from moldau.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


@api(ApiKey.ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest, versions=(0, 4))
def add_offsets_to_txn(
    request: AddOffsetsToTxnRequest, context: Context
) -> AddOffsetsToTxnResponse | Future[AddOffsetsToTxnResponse]:
    if not context.may(WRITE, TRANSACTIONAL_ID, request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not context.may(READ, GROUP, request.group_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    offsets_partition = context.services.groups.index_of(request.group_id)
    error = context.services.transactions.write(
        request.transactional_id,
        lambda shard, now_ms: shard.decide_add_offsets(
            request.transactional_id, producer, offsets_partition=offsets_partition, now_ms=now_ms
        ),
        lambda error: error,
    )

    def shape(errors: list[ErrorCode]) -> AddOffsetsToTxnResponse:
        told = error_for_client(errors[0], ApiKey.ADD_OFFSETS_TO_TXN, context.version)
        return AddOffsetsToTxnResponse(error_code=told)

    return together([error], shape)
