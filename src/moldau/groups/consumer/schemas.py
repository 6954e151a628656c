"""The records of consumer groups in `__consumer_offsets`, as Kafka 4.3 lays them out."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct, field

from moldau.core.ids import ZERO_UUID
from moldau.wire.schema import IGNORABLE, NEVER, Bytes, Int8, Int32, Int64, Uuid, tagged


class ConsumerGroupMetadataKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 3
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""


class ConsumerGroupMetadataValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 3
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    epoch: Int32 = 0
    metadata_hash: Annotated[Int64, tagged(0, since=0)] = 0


class PartitionMetadataKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 4
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""


class MemberMetadataKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 5
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""
    member_id: str = ""


class ClassicProtocol(Struct, gc=False):
    name: str = ""
    metadata: Bytes = b""


class ClassicMemberMetadata(Struct, gc=False):
    """What is left out of a record is this, empty, and not null: Kafka's schema says null, its code does otherwise."""

    session_timeout_ms: Int32 = 0
    supported_protocols: list[ClassicProtocol] = []


class MemberMetadataValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 5
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []
    subscribed_topic_regex: str | None = None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: str | None = None
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, tagged(0, since=0)] = field(
        default_factory=ClassicMemberMetadata
    )


class TargetMetadataKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 6
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""


class TargetMetadataValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 6
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    assignment_epoch: Int32 = 0
    assignment_timestamp: Annotated[Int64, tagged(0, since=0), IGNORABLE] = 0


class TargetMemberKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 7
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""
    member_id: str = ""


class TargetTopic(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = []


class TargetMemberValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 7
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    topic_partitions: list[TargetTopic] = []


class CurrentMemberKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""
    member_id: str = ""


class CurrentTopic(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = []
    assignment_epochs: Annotated[list[Int32] | None, tagged(0, since=0)] = None


class CurrentMemberValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    assigned_partitions: list[CurrentTopic] = []
    partitions_pending_revocation: list[CurrentTopic] = []


class RegularExpressionKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 16
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""
    regular_expression: str = ""


class RegularExpressionValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 16
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    topics: list[str] = []
    version: Int64 = 0
    timestamp: Int64 = 0
