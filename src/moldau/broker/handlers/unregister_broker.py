"""UnregisterBroker: forget a broker that will not come back. One that runs is refused, where Kafka forgets it."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.controller.partitions.states import Refusal
from moldau.core.errors import ApiError
from moldau.wire.api import ApiKey
from moldau.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


@api(ApiKey.UNREGISTER_BROKER, UnregisterBrokerRequest, versions=(0, 0), forwarded=True)
async def unregister_broker(request: UnregisterBrokerRequest, context: Context) -> UnregisterBrokerResponse:
    from moldau.controller.members.membership import decide_unregister_broker  # a broker alone needs nothing of it

    services = context.services
    try:
        refusal = await services.controller.write(
            lambda image: decide_unregister_broker(image, request.broker_id, config=services.config)
        )
    except ApiError as wrong:
        refusal = Refusal(wrong.code, wrong.message)
    if refusal is None:
        return UnregisterBrokerResponse(error_message=None)
    return UnregisterBrokerResponse(error_code=refusal.error, error_message=refusal.message)
