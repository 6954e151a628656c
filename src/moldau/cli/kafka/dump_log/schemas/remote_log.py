"""The records of Apache Kafka's `__remote_log_metadata`, as it lays them out."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct, field

from moldau.core.ids import ZERO_UUID
from moldau.wire.schema import Bytes, Int8, Int32, Int64, Uuid, tagged


class TopicIdPartition(Struct, gc=False):
    name: str = ""
    id: Uuid = ZERO_UUID
    partition: Int32 = 0


class SegmentId(Struct, gc=False):
    topic_id_partition: TopicIdPartition = field(default_factory=TopicIdPartition)
    id: Uuid = ZERO_UUID


class SegmentLeaderEpoch(Struct, gc=False):
    leader_epoch: Int32 = 0
    start_offset: Int64 = 0


class SegmentMetadata(Struct, gc=False):
    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    segment_id: SegmentId = field(default_factory=SegmentId)
    start_offset: Int64 = 0
    end_offset: Int64 = 0
    broker_id: Int32 = 0
    max_timestamp_ms: Int64 = 0
    event_timestamp_ms: Int64 = 0
    segment_leader_epochs: list[SegmentLeaderEpoch] = []
    segment_size_in_bytes: Int32 = 0
    custom_metadata: Bytes | None = None
    state: Int8 = 0
    is_transaction_index_empty: Annotated[bool, tagged(0, since=0)] = False


class SegmentMetadataUpdate(Struct, gc=False):
    API_KEY: ClassVar[int] = 1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    segment_id: SegmentId = field(default_factory=SegmentId)
    broker_id: Int32 = 0
    event_timestamp_ms: Int64 = 0
    custom_metadata: Bytes | None = None
    state: Int8 = 0


class PartitionDeletion(Struct, gc=False):
    API_KEY: ClassVar[int] = 2
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    topic_id_partition: TopicIdPartition = field(default_factory=TopicIdPartition)
    broker_id: Int32 = 0
    event_timestamp_ms: Int64 = 0
    state: Int8 = 0
