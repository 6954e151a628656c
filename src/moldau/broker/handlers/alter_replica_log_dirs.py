"""AlterReplicaLogDirs: a replica that is where it shall be stays there; none moves to another log directory yet."""

from __future__ import annotations

from pathlib import Path

from moldau.broker.api import api
from moldau.broker.context import Context, Services
from moldau.core.errors import ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


@api(ApiKey.ALTER_REPLICA_LOG_DIRS, AlterReplicaLogDirsRequest, versions=(1, 2))
def alter_replica_log_dirs(request: AlterReplicaLogDirsRequest, context: Context) -> AlterReplicaLogDirsResponse:
    by_topic: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            by_topic.setdefault(topic.name, []).extend(
                AlterReplicaLogDirPartitionResult(
                    partition_index=index, error_code=_alter(context.services, directory.path, topic.name, index)
                )
                for index in topic.partitions
            )
    return AlterReplicaLogDirsResponse(
        results=[AlterReplicaLogDirTopicResult(topic_name=name, partitions=done) for name, done in by_topic.items()]
    )


def _alter(services: Services, path: str, topic: str, index: int) -> ErrorCode:
    target = Path(path)
    if target not in services.directories.paths:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if target in services.directories.failures:
        return ErrorCode.KAFKA_STORAGE_ERROR
    partition = services.partitions.get(topic, index)
    if partition is None:
        known = services.controller.image.topics.get(topic)
        exists = known is not None and 0 <= index < len(known.partitions)
        return ErrorCode.REPLICA_NOT_AVAILABLE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if partition.log.directory.parent == target else ErrorCode.INVALID_REQUEST
