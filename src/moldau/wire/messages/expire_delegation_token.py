"""ExpireDelegationToken (40): an earlier end for a delegation token, or its end at once; 2 is flexible."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Bytes, Int16, Int32, Int64


class ExpireDelegationTokenRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.EXPIRE_DELEGATION_TOKEN
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_FROM: ClassVar[int] = 2

    hmac: Bytes = b""
    expiry_time_period_ms: Int64 = 0


class ExpireDelegationTokenResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.EXPIRE_DELEGATION_TOKEN
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_FROM: ClassVar[int] = 2

    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0
