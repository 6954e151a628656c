"""AlterReplicaLogDirs (34): move replicas to other folders of the same broker; 2 is flexible."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int16, Int32


class AlterReplicaLogDirTopic(Struct, gc=False):
    name: str = ""
    partitions: list[Int32] = []


class AlterReplicaLogDir(Struct, gc=False):
    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = []


class AlterReplicaLogDirsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ALTER_REPLICA_LOG_DIRS
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_FROM: ClassVar[int] = 2

    dirs: list[AlterReplicaLogDir] = []


class AlterReplicaLogDirPartitionResult(Struct, gc=False):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class AlterReplicaLogDirTopicResult(Struct, gc=False):
    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []


class AlterReplicaLogDirsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ALTER_REPLICA_LOG_DIRS
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_FROM: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
