"""CreatePartitions (37): raise the number of a topic's partitions.

2 is flexible, and 3 may answer that a quota is exceeded.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int16, Int32


class CreatePartitionsAssignment(Struct, gc=False):
    broker_ids: list[Int32] = []


class CreatePartitionsTopic(Struct, gc=False):
    name: str = ""
    count: Int32 = 0
    assignments: list[CreatePartitionsAssignment] | None = []


class CreatePartitionsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.CREATE_PARTITIONS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_FROM: ClassVar[int] = 2

    topics: list[CreatePartitionsTopic] = []
    timeout_ms: Int32 = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(Struct, gc=False):
    name: str = ""
    error_code: Int16 = 0
    error_message: str | None = None


class CreatePartitionsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.CREATE_PARTITIONS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_FROM: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    results: list[CreatePartitionsTopicResult] = []
