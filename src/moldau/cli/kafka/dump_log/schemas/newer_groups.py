"""The records of share and streams groups in Apache Kafka's `__consumer_offsets`, as it lays them out."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.core.ids import ZERO_UUID
from moldau.wire.schema import NEVER, Int8, Int16, Int32, Int64, UInt16, Uuid, tagged


class ShareGroupMemberMetadataValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 10
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []


class ShareGroupMemberMetadataKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 10
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""
    member_id: str = ""


class ShareGroupMetadataValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 11
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    epoch: Int32 = 0
    metadata_hash: Int64 = 0


class ShareGroupMetadataKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 11
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""


class ShareGroupTargetAssignmentMetadataKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 12
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""


class ShareGroupTargetAssignmentMetadataValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 12
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    assignment_epoch: Int32 = 0
    assignment_timestamp: Annotated[Int64, tagged(0, since=0)] = 0


class TopicPartition(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = []


class ShareGroupTargetAssignmentMemberValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 13
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    topic_partitions: list[TopicPartition] = []


class ShareGroupTargetAssignmentMemberKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 13
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""
    member_id: str = ""


class TopicPartitions(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = []


class ShareGroupCurrentMemberAssignmentValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 14
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    assigned_partitions: list[TopicPartitions] = []


class ShareGroupCurrentMemberAssignmentKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 14
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""
    member_id: str = ""


class TopicPartitionsInfo(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    partitions: list[Int32] = []


class TopicInfo(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""


class ShareGroupStatePartitionMetadataValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 15
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    initializing_topics: list[TopicPartitionsInfo] = []
    initialized_topics: list[TopicPartitionsInfo] = []
    deleting_topics: list[TopicInfo] = []


class ShareGroupStatePartitionMetadataKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 15
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""


class LastAssignmentConfig(Struct, gc=False):
    key: str = ""
    value: str = ""


class StreamsGroupMetadataValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 17
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    epoch: Int32 = 0
    metadata_hash: Int64 = 0
    validated_topology_epoch: Annotated[Int32, tagged(0, since=0)] = -1
    last_assignment_configs: Annotated[list[LastAssignmentConfig] | None, tagged(1, since=0)] = []


class StreamsGroupMetadataKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 17
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""


class StreamsGroupMemberMetadataKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 19
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""
    member_id: str = ""


class Endpoint(Struct, gc=False):
    host: str = ""
    port: UInt16 = 0


class KeyValue(Struct, gc=False):
    key: str = ""
    value: str = ""


class StreamsGroupMemberMetadataValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 19
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: Int32 = -1
    topology_epoch: Int32 = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = []


class StreamsGroupTargetAssignmentMetadataValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 20
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    assignment_epoch: Int32 = 0
    assignment_timestamp: Annotated[Int64, tagged(0, since=0)] = 0


class StreamsGroupTargetAssignmentMetadataKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 20
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""


class TaskIds(Struct, gc=False):
    subtopology_id: str = ""
    partitions: list[Int32] = []


class StreamsGroupTargetAssignmentMemberValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []


class StreamsGroupTargetAssignmentMemberKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""
    member_id: str = ""


class StreamsGroupCurrentMemberAssignmentTaskIds(Struct, gc=False):
    subtopology_id: str = ""
    partitions: list[Int32] = []
    assignment_epochs: Annotated[list[Int32] | None, tagged(0, since=0)] = []


class StreamsGroupCurrentMemberAssignmentValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 22
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    active_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = []
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = []
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = []
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = []
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = []
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = []


class StreamsGroupCurrentMemberAssignmentKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 22
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""
    member_id: str = ""


class StreamsGroupTopologyKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 23
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""


class TopicConfig(Struct, gc=False):
    key: str = ""
    value: str = ""


class StreamsGroupTopologyTopicInfo(Struct, gc=False):
    name: str = ""
    partitions: Int32 = 0
    replication_factor: Int16 = 0
    topic_configs: list[TopicConfig] = []


class CopartitionGroup(Struct, gc=False):
    source_topics: list[Int16] = []
    source_topic_regex: list[Int16] = []
    repartition_source_topics: list[Int16] = []


class Subtopology(Struct, gc=False):
    subtopology_id: str = ""
    source_topics: list[str] = []
    source_topic_regex: list[str] = []
    state_changelog_topics: list[StreamsGroupTopologyTopicInfo] = []
    repartition_sink_topics: list[str] = []
    repartition_source_topics: list[StreamsGroupTopologyTopicInfo] = []
    copartition_groups: list[CopartitionGroup] = []


class StreamsGroupTopologyValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 23
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    epoch: Int32 = 0
    subtopologies: list[Subtopology] = []
