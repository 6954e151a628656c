"""PushTelemetry (72): a client's own metrics, as OpenTelemetry's MetricsData in protobuf, compressed (KIP-714)."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.core.ids import ZERO_UUID
from moldau.wire.api import ApiKey
from moldau.wire.schema import Bytes, Int8, Int16, Int32, Uuid


class PushTelemetryRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.PUSH_TELEMETRY
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    client_instance_id: Uuid = ZERO_UUID
    subscription_id: Int32 = 0
    terminating: bool = False
    compression_type: Int8 = 0
    metrics: Bytes = b""


class PushTelemetryResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.PUSH_TELEMETRY
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
