"""DescribeLogDirs: how large each partition is, log directory by log directory.

v3 has an error for the request as a whole, v4 tells the size of the disk, v5 whether it takes new partitions.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import NamedTuple

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import ROWS_MAX, Encoded, encoded
from moldau.broker.topics.partitions import Partitions
from moldau.coordinator.long_work import in_slices
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


class Size(NamedTuple):
    topic: str
    partition: int
    size_bytes: int
    offset_lag: int = 0
    is_future: bool = False


@api(ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest, versions=(1, 5))
async def describe_log_dirs(
    request: DescribeLogDirsRequest, context: Context
) -> DescribeLogDirsResponse | Encoded[DescribeLogDirsResponse]:
    services = context.services
    found: dict[str, list[Size]] = {str(path): [] for path in services.directories.paths}
    rows = 0
    async for partition in in_slices(_wanted(request, services.partitions), services.long_work):
        if partition is not None:
            rows += 1
            stored = partition.log
            found[os.path.dirname(stored.path)].append(Size(partition.topic, partition.index, stored.size_bytes()))
            way = None if services.moves is None else services.moves.way_of(stored)
            if way is not None:
                lag = max(0, stored.end_offset - way.end_offset)
                size = Size(partition.topic, partition.index, way.size_bytes, lag, is_future=True)
                found[way.target].append(size)
    failed = {str(path) for path in services.directories.failures}

    def shape() -> DescribeLogDirsResponse:
        return DescribeLogDirsResponse(
            results=[_failed(path) if path in failed else _describe(path, sizes) for path, sizes in found.items()]
        )

    return shape() if rows <= ROWS_MAX else await encoded(shape, context)


def _wanted(request: DescribeLogDirsRequest, partitions: Partitions) -> Iterator[Partition | None]:
    """Each once. No list asks for everything, an empty one for the log directories alone."""
    if request.topics is None:
        yield from [*partitions.all()]
        return
    known: set[tuple[str, int]] = set()
    for topic in request.topics:
        for index in topic.partitions:
            if (topic.topic, index) not in known:
                known.add((topic.topic, index))
                yield partitions.get(topic.topic, index)


def _describe(path: str, sizes: list[Size]) -> DescribeLogDirsResult:
    try:
        disk = shutil.disk_usage(path)
    except OSError:
        return _failed(path)
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for topic, index, size_bytes, offset_lag, is_future in sorted(sizes):
        # Only a replica on its way to another log directory lags behind itself.
        by_topic.setdefault(topic, []).append(
            DescribeLogDirsPartition(
                partition_index=index, partition_size=size_bytes, offset_lag=offset_lag, is_future_key=is_future
            )
        )
    return DescribeLogDirsResult(
        log_dir=path,
        topics=[DescribeLogDirsTopic(name=name, partitions=of_topic) for name, of_topic in by_topic.items()],
        total_bytes=disk.total,
        usable_bytes=disk.free,
    )


def _failed(path: str) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path)
