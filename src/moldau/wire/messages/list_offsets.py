"""ListOffsets (2): the offset at a timestamp, or at the log's start or end.

2 adds isolation levels, 4 leader epochs, 6 is flexible. -1 asks for the end and -2 for the start; later versions give
more timestamps a meaning: 7 the largest timestamp (-3), 8 the earliest local offset (-4), 9 the last tiered offset
(-5), 11 the first offset not yet uploaded (-6). 10 adds a timeout for remote storage.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int8, Int16, Int32, Int64, since


class ListOffsetsPartition(Struct, gc=False):
    partition_index: Int32 = 0
    current_leader_epoch: Annotated[Int32, since(4), IGNORABLE] = -1
    timestamp: Int64 = 0


class ListOffsetsTopic(Struct, gc=False):
    name: str = ""
    partitions: list[ListOffsetsPartition] = []


class ListOffsetsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.LIST_OFFSETS
    VERSIONS: ClassVar[tuple[int, int]] = (1, 11)
    FLEXIBLE_FROM: ClassVar[int] = 6

    replica_id: Int32 = 0
    isolation_level: Annotated[Int8, since(2)] = 0
    topics: list[ListOffsetsTopic] = []
    timeout_ms: Annotated[Int32, since(10), IGNORABLE] = 0


class ListOffsetsPartitionResponse(Struct, gc=False):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Annotated[Int32, since(4)] = -1


class ListOffsetsTopicResponse(Struct, gc=False):
    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = []


class ListOffsetsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.LIST_OFFSETS
    VERSIONS: ClassVar[tuple[int, int]] = (1, 11)
    FLEXIBLE_FROM: ClassVar[int] = 6

    throttle_time_ms: Annotated[Int32, since(2), IGNORABLE] = 0
    topics: list[ListOffsetsTopicResponse] = []
