"""What `__consumer_offsets` holds beyond what our coordinators read: old facts, and what members tell each other."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.core.ids import ZERO_UUID
from moldau.wire.schema import NEVER, Bytes, Int32, Uuid, since


class PartitionMetadata(Struct, gc=False):
    partition: Int32 = 0
    racks: list[str] = []


class TopicMetadata(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    num_partitions: Int32 = 0
    partition_metadata: list[PartitionMetadata] = []


class ConsumerGroupPartitionMetadataValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 4
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    topics: list[TopicMetadata] = []


class TopicPartition(Struct, gc=False):
    topic: Annotated[str, since(1)] = ""
    partitions: Annotated[list[Int32], since(1)] = []


class ConsumerProtocolSubscription(Struct, gc=False):
    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    topics: list[str] = []
    user_data: Bytes | None = None
    owned_partitions: Annotated[list[TopicPartition], since(1)] = []
    generation_id: Annotated[Int32, since(2)] = -1
    rack_id: Annotated[str | None, since(3)] = None


class ConsumerProtocolAssignmentTopicPartition(Struct, gc=False):
    topic: str = ""
    partitions: list[Int32] = []


class ConsumerProtocolAssignment(Struct, gc=False):
    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = []
    user_data: Bytes | None = None
