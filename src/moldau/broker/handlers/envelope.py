"""Envelope, v0: a client's request that another broker sends on, because only the controller can answer it."""

from __future__ import annotations

import logging
from ipaddress import ip_address

from moldau.broker.api import api
from moldau.broker.context import NO_PORT, Context, Peer
from moldau.broker.network.inbox import FRAME_BYTES_MIN
from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.security.principals import deserialized
from moldau.wire.api import ApiKey
from moldau.wire.frame import SIZE_BYTES
from moldau.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse

LOGGER = logging.getLogger(__name__)

KEY_BYTES = 2


@api(ApiKey.ENVELOPE, EnvelopeRequest, versions=(0, 0))
async def envelope(request: EnvelopeRequest, context: Context) -> EnvelopeResponse:
    context.exempt()
    services = context.services
    dispatch = services.dispatch
    assert dispatch is not None, "requests come when there is somebody to answer them"
    try:
        host = str(ip_address(bytes(request.client_host_address)))
    except ValueError:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    peer = context.peer  # whoever sends a request of its own this way, as brokers do, names no principal
    if request.request_principal is not None:
        try:
            peer = Peer(peer.listener_name, host, NO_PORT, deserialized(request.request_principal))
        except ProtocolViolation:
            return EnvelopeResponse(error_code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE)
    frame = memoryview(request.request_data)
    key = int.from_bytes(frame[:KEY_BYTES], "big", signed=True)
    if len(frame) < FRAME_BYTES_MIN or not dispatch.is_forwarded(key):
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    if not services.controller.is_active:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    try:
        answer = await dispatch.answered(frame, peer)
    except ProtocolViolation:
        return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    except Exception:
        # The connection is another broker's, and has the requests of many clients behind this one.
        LOGGER.exception("a forwarded request could not be answered")
        return EnvelopeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    if not services.controller.is_active:
        # What was answered may be that it could not be done; the next controller says the same, or does it.
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    return EnvelopeResponse(response_data=answer[SIZE_BYTES:])
