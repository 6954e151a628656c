"""AddOffsetsToTxn (25): a transaction is about to commit offsets of a group.

2 tells a fenced producer so, 3 is flexible, 4 lets a transaction be aborted on error.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int16, Int32, Int64


class AddOffsetsToTxnRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ADD_OFFSETS_TO_TXN
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_FROM: ClassVar[int] = 3

    transactional_id: str = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    group_id: str = ""


class AddOffsetsToTxnResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ADD_OFFSETS_TO_TXN
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_FROM: ClassVar[int] = 3

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
