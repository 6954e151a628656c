"""DeleteRecords (21): move the start of a partition's log forward.

-1 stands for the high watermark. 2 is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int16, Int32, Int64


class DeleteRecordsPartition(Struct, gc=False):
    partition_index: Int32 = 0
    offset: Int64 = 0


class DeleteRecordsTopic(Struct, gc=False):
    name: str = ""
    partitions: list[DeleteRecordsPartition] = []


class DeleteRecordsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DELETE_RECORDS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 2

    topics: list[DeleteRecordsTopic] = []
    timeout_ms: Int32 = 0


class DeleteRecordsPartitionResult(Struct, gc=False):
    partition_index: Int32 = 0
    low_watermark: Int64 = 0
    error_code: Int16 = 0


class DeleteRecordsTopicResult(Struct, gc=False):
    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = []


class DeleteRecordsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DELETE_RECORDS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    topics: list[DeleteRecordsTopicResult] = []
