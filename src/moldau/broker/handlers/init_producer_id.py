"""InitProducerId: v3 lets a producer bump the epoch of an id it has, v4 and v5 only widen the error codes.

Idempotent producers get an id that nobody had before, also when they bring one along: a new id is a stronger fence
than a bumped epoch, and it is what Kafka does. With a transactional id its coordinator decides.
"""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.rights import TRANSACTIONAL_ID, WRITE, may_write_anything
from moldau.core.errors import ApiError, ErrorCode
from moldau.transactions.errors import error_for_client
from moldau.transactions.producers import Initialising
from moldau.wire.api import ApiKey
from moldau.wire.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from moldau.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FIRST_EPOCH = 0


@api(ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest, versions=(0, 5))
async def init_producer_id(request: InitProducerIdRequest, context: Context) -> InitProducerIdResponse:
    if request.transactional_id is not None and not context.may(WRITE, TRANSACTIONAL_ID, request.transactional_id):
        return _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.transactional_id is None and not may_write_anything(context):
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    is_half_known = (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH)
    if request.transactional_id == "" or is_half_known:
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return await _transactional(request, request.transactional_id, context)
    try:
        producer_id = await context.services.producer_ids.next()
    except ApiError as wrong:
        return _refused(wrong.code)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=FIRST_EPOCH)


async def _transactional(
    request: InitProducerIdRequest, transactional_id: str, context: Context
) -> InitProducerIdResponse:
    reply = await context.services.transactions.init_producer_id(
        Initialising(
            transactional_id=transactional_id,
            timeout_ms=request.transaction_timeout_ms,
            producer_id=request.producer_id,
            epoch=request.producer_epoch,
        )
    )
    error = error_for_client(reply.error, ApiKey.INIT_PRODUCER_ID, context.version)
    return InitProducerIdResponse(error_code=error, producer_id=reply.producer_id, producer_epoch=reply.epoch)


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
