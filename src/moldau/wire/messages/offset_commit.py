"""OffsetCommit (8): remember how far a group has consumed.

2 is the oldest left; 2 to 4 let the client say for how long, and since 5 the broker's configuration decides that. 6
adds the leader epoch, 7 static members, 8 is flexible, 9 is also for the consumer protocol, whose member epoch takes
the generation's place, and 10 names topics by id.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.core.ids import ZERO_UUID
from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int16, Int32, Int64, Uuid, since, until, within


class OffsetCommitRequestPartition(Struct, gc=False):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, since(6), IGNORABLE] = -1
    committed_metadata: str | None = ""


class OffsetCommitRequestTopic(Struct, gc=False):
    name: Annotated[str, until(9), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(10), IGNORABLE] = ZERO_UUID
    partitions: list[OffsetCommitRequestPartition] = []


class OffsetCommitRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.OFFSET_COMMIT
    VERSIONS: ClassVar[tuple[int, int]] = (2, 10)
    FLEXIBLE_FROM: ClassVar[int] = 8

    group_id: str = ""
    generation_id_or_member_epoch: Int32 = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(7)] = None
    retention_time_ms: Annotated[Int64, within(2, 4), IGNORABLE] = -1
    topics: list[OffsetCommitRequestTopic] = []


class OffsetCommitResponsePartition(Struct, gc=False):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetCommitResponseTopic(Struct, gc=False):
    name: Annotated[str, until(9), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(10), IGNORABLE] = ZERO_UUID
    partitions: list[OffsetCommitResponsePartition] = []


class OffsetCommitResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.OFFSET_COMMIT
    VERSIONS: ClassVar[tuple[int, int]] = (2, 10)
    FLEXIBLE_FROM: ClassVar[int] = 8

    throttle_time_ms: Annotated[Int32, since(3), IGNORABLE] = 0
    topics: list[OffsetCommitResponseTopic] = []
