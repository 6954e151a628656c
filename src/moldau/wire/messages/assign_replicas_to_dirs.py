"""AssignReplicasToDirs (73): a broker tells in which log directories its replicas are, or that they are lost.

The only version is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.core.ids import ZERO_UUID
from moldau.wire.api import ApiKey
from moldau.wire.schema import Int16, Int32, Int64, Uuid


class AssignedPartition(Struct, gc=False):
    partition_index: Int32 = 0


class AssignedTopic(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[AssignedPartition] = []


class AssignedDirectory(Struct, gc=False):
    id: Uuid = ZERO_UUID
    topics: list[AssignedTopic] = []


class AssignReplicasToDirsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ASSIGN_REPLICAS_TO_DIRS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    directories: list[AssignedDirectory] = []


class PartitionData(Struct, gc=False):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class TopicData(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


class DirectoryData(Struct, gc=False):
    id: Uuid = ZERO_UUID
    topics: list[TopicData] = []


class AssignReplicasToDirsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ASSIGN_REPLICAS_TO_DIRS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    directories: list[DirectoryData] = []
