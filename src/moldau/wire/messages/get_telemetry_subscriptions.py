"""GetTelemetrySubscriptions (71): which of its own metrics a client is to push, and how often (KIP-714)."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.core.ids import ZERO_UUID
from moldau.wire.api import ApiKey
from moldau.wire.schema import Int8, Int16, Int32, Uuid


class GetTelemetrySubscriptionsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.GET_TELEMETRY_SUBSCRIPTIONS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    client_instance_id: Uuid = ZERO_UUID


class GetTelemetrySubscriptionsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.GET_TELEMETRY_SUBSCRIPTIONS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    client_instance_id: Uuid = ZERO_UUID
    subscription_id: Int32 = 0
    accepted_compression_types: list[Int8] = []
    push_interval_ms: Int32 = 0
    telemetry_max_bytes: Int32 = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = []
