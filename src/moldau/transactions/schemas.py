"""The records of `__transaction_state` as Kafka lays them out: a key that names its kind, a value with its version.

Version 1 of the value is flexible; its tags came with the second protocol and are written from `transaction.version` 1.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.schema import IGNORABLE, NEVER, Int8, Int16, Int32, Int64, tagged


class TransactionLogKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    transactional_id: str = ""


class PartitionsSchema(Struct, gc=False):
    topic: str = ""
    partition_ids: list[Int32] = []


class TransactionLogValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = 1

    producer_id: Int64 = 0
    previous_producer_id: Annotated[Int64, tagged(0, since=1), IGNORABLE] = -1
    next_producer_id: Annotated[Int64, tagged(1, since=1), IGNORABLE] = -1
    producer_epoch: Int16 = 0
    next_producer_epoch: Annotated[Int16, tagged(3, since=1), IGNORABLE] = -1
    transaction_timeout_ms: Int32 = 0
    transaction_status: Int8 = 0
    transaction_partitions: list[PartitionsSchema] | None = []
    transaction_last_update_timestamp_ms: Int64 = 0
    transaction_start_timestamp_ms: Int64 = 0
    client_transaction_version: Annotated[Int16, tagged(2, since=1), IGNORABLE] = 0
