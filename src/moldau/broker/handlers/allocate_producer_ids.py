"""AllocateProducerIds: a block of producer ids for a broker that is not the controller."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.controller.producer_ids import decide_allocate_to_broker
from moldau.core.errors import ApiError, ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


@api(ApiKey.ALLOCATE_PRODUCER_IDS, AllocateProducerIdsRequest, versions=(0, 0))
async def allocate_producer_ids(request: AllocateProducerIdsRequest, context: Context) -> AllocateProducerIdsResponse:
    context.exempt()
    try:
        block = await context.services.controller.write(
            lambda image: decide_allocate_to_broker(image, request.broker_id, request.broker_epoch)
        )
    except ApiError as wrong:
        block = wrong.code
    if isinstance(block, ErrorCode):
        return AllocateProducerIdsResponse(error_code=block)
    return AllocateProducerIdsResponse(producer_id_start=block.start, producer_id_len=len(block))
