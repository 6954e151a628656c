"""DescribeTransactions (65): the state of transactional ids and the partitions of their open transactions."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int16, Int32, Int64


class DescribeTransactionsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_TRANSACTIONS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    transactional_ids: list[str] = []


class TopicData(Struct, gc=False):
    topic: str = ""
    partitions: list[Int32] = []


class TransactionState(Struct, gc=False):
    error_code: Int16 = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: list[TopicData] = []


class DescribeTransactionsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_TRANSACTIONS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    transaction_states: list[TransactionState] = []
