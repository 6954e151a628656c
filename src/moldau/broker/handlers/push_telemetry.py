"""PushTelemetry, v0: a client's own metrics, which `/metrics` shows and a collector gets (KIP-714)."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.core.errors import ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages import PushTelemetryRequest, PushTelemetryResponse


@api(ApiKey.PUSH_TELEMETRY, PushTelemetryRequest, versions=(0, 0))
async def push_telemetry(request: PushTelemetryRequest, context: Context) -> PushTelemetryResponse:
    receiver = context.services.telemetry
    assert receiver is not None, "this is answered only where metrics are on"
    error = receiver.refuse_push(request, context)
    if error is ErrorCode.NONE and len(request.metrics):
        error = await receiver.take(request, context)
    return PushTelemetryResponse(error_code=error)
