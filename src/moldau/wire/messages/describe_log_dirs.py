"""DescribeLogDirs (35): how much each replica takes in each of the broker's directories.

2 is flexible, 3 brings an error of the whole request, 4 the size of the volume and what is free on it, 5 whether the
directory is cordoned against new replicas.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int16, Int32, Int64, since


class DescribableLogDirTopic(Struct, gc=False):
    topic: str = ""
    partitions: list[Int32] = []


class DescribeLogDirsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_LOG_DIRS
    VERSIONS: ClassVar[tuple[int, int]] = (1, 5)
    FLEXIBLE_FROM: ClassVar[int] = 2

    topics: list[DescribableLogDirTopic] | None = []


class DescribeLogDirsPartition(Struct, gc=False):
    partition_index: Int32 = 0
    partition_size: Int64 = 0
    offset_lag: Int64 = 0
    is_future_key: bool = False


class DescribeLogDirsTopic(Struct, gc=False):
    name: str = ""
    partitions: list[DescribeLogDirsPartition] = []


class DescribeLogDirsResult(Struct, gc=False):
    error_code: Int16 = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: Annotated[Int64, since(4), IGNORABLE] = -1
    usable_bytes: Annotated[Int64, since(4), IGNORABLE] = -1
    is_cordoned: Annotated[bool, since(5), IGNORABLE] = False


class DescribeLogDirsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_LOG_DIRS
    VERSIONS: ClassVar[tuple[int, int]] = (1, 5)
    FLEXIBLE_FROM: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(3), IGNORABLE] = 0
    results: list[DescribeLogDirsResult] = []
