"""UnregisterBroker (64): forget a broker that will not come back; the only version is flexible."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int16, Int32


class UnregisterBrokerRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.UNREGISTER_BROKER
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    broker_id: Int32 = 0


class UnregisterBrokerResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.UNREGISTER_BROKER
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = ""
