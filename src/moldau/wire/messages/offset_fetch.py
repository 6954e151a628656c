"""OffsetFetch (9): the offsets that groups have committed.

1 is the oldest left. 2 can ask for all topics with null and has an error for the whole answer, 5 adds the leader epoch,
6 is flexible, 7 can wait for open transactions, 8 asks for many groups at once, in classes of their own, 9 names the
member who asks, for the consumer protocol, and 10 names topics by id.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.core.ids import ZERO_UUID
from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int16, Int32, Int64, Uuid, nullable, since, until, within


class OffsetFetchRequestTopic(Struct, gc=False):
    name: str = ""
    partition_indexes: list[Int32] = []


class OffsetFetchRequestTopics(Struct, gc=False):
    name: Annotated[str, until(9), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(10), IGNORABLE] = ZERO_UUID
    partition_indexes: list[Int32] = []


class OffsetFetchRequestGroup(Struct, gc=False):
    group_id: str = ""
    member_id: Annotated[str | None, since(9), IGNORABLE] = None
    member_epoch: Annotated[Int32, since(9), IGNORABLE] = -1
    topics: list[OffsetFetchRequestTopics] | None = []


class OffsetFetchRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.OFFSET_FETCH
    VERSIONS: ClassVar[tuple[int, int]] = (1, 10)
    FLEXIBLE_FROM: ClassVar[int] = 6

    group_id: Annotated[str, until(7)] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, until(7), nullable(2)] = []
    groups: Annotated[list[OffsetFetchRequestGroup], since(8)] = []
    require_stable: Annotated[bool, since(7)] = False


class OffsetFetchResponsePartition(Struct, gc=False):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, since(5), IGNORABLE] = -1
    metadata: str | None = ""
    error_code: Int16 = 0


class OffsetFetchResponseTopic(Struct, gc=False):
    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = []


class OffsetFetchResponsePartitions(Struct, gc=False):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = -1
    metadata: str | None = ""
    error_code: Int16 = 0


class OffsetFetchResponseTopics(Struct, gc=False):
    name: Annotated[str, until(9), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(10), IGNORABLE] = ZERO_UUID
    partitions: list[OffsetFetchResponsePartitions] = []


class OffsetFetchResponseGroup(Struct, gc=False):
    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = []
    error_code: Int16 = 0


class OffsetFetchResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.OFFSET_FETCH
    VERSIONS: ClassVar[tuple[int, int]] = (1, 10)
    FLEXIBLE_FROM: ClassVar[int] = 6

    throttle_time_ms: Annotated[Int32, since(3), IGNORABLE] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], until(7)] = []
    error_code: Annotated[Int16, within(2, 7), IGNORABLE] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], since(8)] = []
