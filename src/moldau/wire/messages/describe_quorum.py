"""DescribeQuorum (55): who keeps the cluster's metadata, and how far each of them is.

1 tells when each was seen last, 2 has messages for errors, the folder of each keeper and where it can be reached.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.core.ids import ZERO_UUID
from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int16, Int32, Int64, UInt16, Uuid, since


class QuorumPartitionQuery(Struct, gc=False):
    partition_index: Int32 = 0


class QuorumTopicQuery(Struct, gc=False):
    topic_name: str = ""
    partitions: list[QuorumPartitionQuery] = []


class DescribeQuorumRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_QUORUM
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 0

    topics: list[QuorumTopicQuery] = []


class ReplicaState(Struct, gc=False):
    replica_id: Int32 = 0
    replica_directory_id: Annotated[Uuid, since(2)] = ZERO_UUID
    log_end_offset: Int64 = 0
    last_fetch_timestamp: Annotated[Int64, since(1), IGNORABLE] = -1
    last_caught_up_timestamp: Annotated[Int64, since(1), IGNORABLE] = -1


class PartitionData(Struct, gc=False):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[str | None, since(2), IGNORABLE] = ""
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    high_watermark: Int64 = 0
    current_voters: list[ReplicaState] = []
    observers: list[ReplicaState] = []


class TopicData(Struct, gc=False):
    topic_name: str = ""
    partitions: list[PartitionData] = []


class Listener(Struct, gc=False):
    name: str = ""
    host: str = ""
    port: UInt16 = 0


class Node(Struct, gc=False):
    node_id: Int32 = 0
    listeners: list[Listener] = []


class DescribeQuorumResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_QUORUM
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 0

    error_code: Int16 = 0
    error_message: Annotated[str | None, since(2), IGNORABLE] = ""
    topics: list[TopicData] = []
    nodes: Annotated[list[Node], since(2)] = []
