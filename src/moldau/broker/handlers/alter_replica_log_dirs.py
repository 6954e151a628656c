"""AlterReplicaLogDirs: a replica moves to another log directory of this broker, which the answer does not wait for."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Iterator
from pathlib import Path

from moldau.broker.api import api
from moldau.broker.context import Context, Services
from moldau.broker.requests.answers import Encoded, in_turn
from moldau.core.errors import ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


@api(ApiKey.ALTER_REPLICA_LOG_DIRS, AlterReplicaLogDirsRequest, versions=(1, 2))
def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, context: Context
) -> AlterReplicaLogDirsResponse | Future[AlterReplicaLogDirsResponse | Encoded[AlterReplicaLogDirsResponse]]:
    def shape(altered: list[ErrorCode]) -> AlterReplicaLogDirsResponse:
        by_topic: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
        for (_, topic, index), error in zip(_replicas(request), altered, strict=True):
            result = AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error)
            by_topic.setdefault(topic, []).append(result)
        return AlterReplicaLogDirsResponse(
            results=[AlterReplicaLogDirTopicResult(topic_name=name, partitions=done) for name, done in by_topic.items()]
        )

    known = context.services.directories.paths
    return in_turn(
        _replicas(request),
        lambda one: _alter(context.services, *one) if one[0] in known else ErrorCode.LOG_DIR_NOT_FOUND,
        shape,
        context,
    )


def _replicas(request: AlterReplicaLogDirsRequest) -> Iterator[tuple[Path, str, int]]:
    """Each with the folder that it shall be in."""
    for directory in request.dirs:
        target = Path(directory.path)
        for topic in directory.topics:
            for index in topic.partitions:
                yield target, topic.name, index


def _alter(services: Services, target: Path, topic: str, index: int) -> ErrorCode:
    if target in services.directories.failures:
        return ErrorCode.KAFKA_STORAGE_ERROR
    partition = services.partitions.get(topic, index)
    if partition is None:
        known = services.controller.image.topics.get(topic)
        exists = known is not None and 0 <= index < len(known.partitions)
        return ErrorCode.REPLICA_NOT_AVAILABLE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.log.offline is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if services.moves is None:
        if partition.log.directory.parent == target:
            return ErrorCode.NONE
        from moldau.broker.topics.moving import ReplicaMoves  # few brokers ever need it

        services.moves = ReplicaMoves(services)
    services.moves.begin(partition, str(target))
    return ErrorCode.NONE
