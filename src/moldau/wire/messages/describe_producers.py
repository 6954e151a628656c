"""DescribeProducers (61): the producers that a partition remembers, with their sequences and open transactions."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int16, Int32, Int64


class TopicRequest(Struct, gc=False):
    name: str = ""
    partition_indexes: list[Int32] = []


class DescribeProducersRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_PRODUCERS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    topics: list[TopicRequest] = []


class ProducerState(Struct, gc=False):
    producer_id: Int64 = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1


class PartitionResponse(Struct, gc=False):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None
    active_producers: list[ProducerState] = []


class TopicResponse(Struct, gc=False):
    name: str = ""
    partitions: list[PartitionResponse] = []


class DescribeProducersResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_PRODUCERS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    topics: list[TopicResponse] = []
