"""DescribeLogDirs: how large each partition is, folder by folder.

v3 has an error for the request as a whole, v4 tells the size of the disk, v5 whether the folder takes new partitions.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.core.errors import ErrorCode
from moldau.replication.partition import Partition
from moldau.wire.api import ApiKey
from moldau.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


@api(ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest, versions=(1, 5))
def describe_log_dirs(request: DescribeLogDirsRequest, context: Context) -> DescribeLogDirsResponse:
    wanted = _wanted(request)
    found: dict[Path, list[Partition]] = {path: [] for path in context.services.directories.paths}
    for partition in context.services.partitions.all():
        if wanted is None or (partition.topic, partition.index) in wanted:
            found[partition.log.directory.parent].append(partition)
    failed = context.services.directories.failures
    return DescribeLogDirsResponse(
        results=[_failed(path) if path in failed else _describe(path, partitions) for path, partitions in found.items()]
    )


def _wanted(request: DescribeLogDirsRequest) -> set[tuple[str, int]] | None:
    """No list asks for everything, an empty one for the folders alone."""
    if request.topics is None:
        return None
    return {(topic.topic, index) for topic in request.topics for index in topic.partitions}


def _describe(path: Path, partitions: list[Partition]) -> DescribeLogDirsResult:
    try:
        disk = shutil.disk_usage(path)
    except OSError:
        return _failed(path)
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition in sorted(partitions, key=lambda each: (each.topic, each.index)):
        by_topic.setdefault(partition.topic, []).append(_size(partition))
    return DescribeLogDirsResult(
        log_dir=str(path),
        topics=[DescribeLogDirsTopic(name=name, partitions=sizes) for name, sizes in by_topic.items()],
        total_bytes=disk.total,
        usable_bytes=disk.free,
    )


def _failed(path: Path) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(path))


def _size(partition: Partition) -> DescribeLogDirsPartition:
    # Only a replica on its way to another folder lags behind itself, and none moves here.
    return DescribeLogDirsPartition(
        partition_index=partition.index, partition_size=partition.log.size_bytes(), offset_lag=0, is_future_key=False
    )
