"""EndTxn (26): commit or abort a transaction.

2 tells a fenced producer so, 3 is flexible, 4 lets a transaction be aborted on error, and 5 raises the producer's epoch
with every transaction and so answers with the id and epoch for the next.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int16, Int32, Int64, since


class EndTxnRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.END_TXN
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int] = 3

    transactional_id: str = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: bool = False


class EndTxnResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.END_TXN
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int] = 3

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Annotated[Int64, since(5), IGNORABLE] = -1
    producer_epoch: Annotated[Int16, since(5), IGNORABLE] = -1
