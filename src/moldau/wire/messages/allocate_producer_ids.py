"""AllocateProducerIds (67): a broker asks the controller for a block of producer ids; every version is flexible."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int16, Int32, Int64


class AllocateProducerIdsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ALLOCATE_PRODUCER_IDS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1


class AllocateProducerIdsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ALLOCATE_PRODUCER_IDS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id_start: Int64 = 0
    producer_id_len: Int32 = 0
