"""OffsetForLeaderEpoch (23): where a leader epoch ended, by which consumers and followers find that logs diverged.

librdkafka speaks version 2 and no other. 3 says who asks (-1 a consumer, -2 before), 4 is flexible.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int16, Int32, Int64, since


class OffsetForLeaderPartition(Struct, gc=False):
    partition: Int32 = 0
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32 = 0


class OffsetForLeaderTopic(Struct, gc=False):
    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = []


class OffsetForLeaderEpochRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.OFFSET_FOR_LEADER_EPOCH
    VERSIONS: ClassVar[tuple[int, int]] = (2, 4)
    FLEXIBLE_FROM: ClassVar[int] = 4

    replica_id: Annotated[Int32, since(3), IGNORABLE] = -2
    topics: list[OffsetForLeaderTopic] = []


class EpochEndOffset(Struct, gc=False):
    error_code: Int16 = 0
    partition: Int32 = 0
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class OffsetForLeaderTopicResult(Struct, gc=False):
    topic: str = ""
    partitions: list[EpochEndOffset] = []


class OffsetForLeaderEpochResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.OFFSET_FOR_LEADER_EPOCH
    VERSIONS: ClassVar[tuple[int, int]] = (2, 4)
    FLEXIBLE_FROM: ClassVar[int] = 4

    throttle_time_ms: Int32 = 0
    topics: list[OffsetForLeaderTopicResult] = []
