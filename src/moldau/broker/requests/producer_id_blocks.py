"""Blocks of producer ids from a controller on another broker (AllocateProducerIds)."""

from __future__ import annotations

from moldau.broker.requests.forwarding import Forwarding
from moldau.controller.runtime import Controller
from moldau.core.errors import ApiError, ErrorCode
from moldau.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest

VERSION = 0
ALLOCATE_MS_MAX = 5_000  # a producer asks again; a new controller is elected in less


async def block_elsewhere(broker_id: int, controller: Controller, forwarding: Forwarding) -> range | None:
    """None if this broker is the controller. Raises ApiError that producers try again after."""
    if controller.is_active:
        return None
    registered = controller.image.brokers.get(broker_id)
    request = AllocateProducerIdsRequest(broker_id, -1 if registered is None else registered.epoch)
    response = await forwarding.ask(request, VERSION, timeout_ms=ALLOCATE_MS_MAX)
    if response is None and controller.is_active:
        return None
    if response is None or response.error_code != ErrorCode.NONE:
        reason = "no controller answers" if response is None else ErrorCode(response.error_code).name
        raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"there are no producer ids to give out: {reason}")
    return range(response.producer_id_start, response.producer_id_start + response.producer_id_len)
