"""InitProducerId: v3 lets a producer bump the epoch of an id it has, v4 and v5 only widen the error codes.

Idempotent producers get an id that nobody had before, also when they bring one along: a new id is a stronger fence
than a bumped epoch, and it is what Kafka does. There are no transactions yet. A transactional id is refused with an
error that clients do not retry: a producer that can't work should stop at once and say so.
"""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.core.errors import ApiError, ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NO_PRODUCER_ID = -1
NO_EPOCH = -1
FIRST_EPOCH = 0


@api(ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest, versions=(0, 5))
async def init_producer_id(request: InitProducerIdRequest, context: Context) -> InitProducerIdResponse:
    error = _check(request)
    if error is not ErrorCode.NONE:
        return _refused(error)
    try:
        producer_id = await context.services.producer_ids.next()
    except ApiError as wrong:
        return _refused(wrong.code)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=FIRST_EPOCH)


def _check(request: InitProducerIdRequest) -> ErrorCode:
    if request.transactional_id == "":
        return ErrorCode.INVALID_REQUEST
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
        return ErrorCode.INVALID_REQUEST
    if request.transactional_id is not None:
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.NONE


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)
