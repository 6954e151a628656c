"""InitProducerId (22): a producer id and epoch, for idempotence and for transactions.

2 is flexible, 3 lets a producer raise the epoch it has, 4 tells a fenced producer so, 5 lets a transaction be aborted
on error, and 6, which Kafka does not advertise yet, is for two-phase commit.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int16, Int32, Int64, since


class InitProducerIdRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.INIT_PRODUCER_ID
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_FROM: ClassVar[int] = 2

    transactional_id: str | None = ""
    transaction_timeout_ms: Int32 = 0
    producer_id: Annotated[Int64, since(3)] = -1
    producer_epoch: Annotated[Int16, since(3)] = -1
    enable2_pc: Annotated[bool, since(6)] = False
    keep_prepared_txn: Annotated[bool, since(6)] = False


class InitProducerIdResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.INIT_PRODUCER_ID
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_FROM: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0
    ongoing_txn_producer_id: Annotated[Int64, since(6)] = -1
    ongoing_txn_producer_epoch: Annotated[Int16, since(6)] = -1
