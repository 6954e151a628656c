"""GetTelemetrySubscriptions, v0: which of its own metrics a client is to push (KIP-714)."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.core.errors import ErrorCode
from moldau.core.ids import ZERO_UUID
from moldau.wire.api import ApiKey
from moldau.wire.compression import Codec
from moldau.wire.messages import GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse

ACCEPTED = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""In the order that Kafka has; a client takes the first that it can."""


@api(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, GetTelemetrySubscriptionsRequest, versions=(0, 0))
def get_telemetry_subscriptions(
    request: GetTelemetrySubscriptionsRequest, context: Context
) -> GetTelemetrySubscriptionsResponse:
    receiver = context.services.telemetry
    assert receiver is not None, "this is answered only where metrics are on"
    wanted_id = request.client_instance_id
    instance = receiver.instance_for(b"" if wanted_id == ZERO_UUID else wanted_id, context)
    refusal = receiver.instances.refuse_get(instance, receiver.elapsed_ms())
    if refusal is not ErrorCode.NONE:
        return GetTelemetrySubscriptionsResponse(error_code=refusal)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance.client.instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=[*ACCEPTED],
        push_interval_ms=instance.wanted.interval_ms,
        telemetry_max_bytes=receiver.instances.payload_bytes_max,
        delta_temporality=True,
        requested_metrics=[*instance.wanted.metrics],
    )
