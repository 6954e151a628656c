"""OffsetDelete (47): forget what a group committed for partitions of topics that it isn't subscribed to.

It has one version, and that has the old lengths.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import NEVER, Int16, Int32


class OffsetDeleteRequestPartition(Struct, gc=False):
    partition_index: Int32 = 0


class OffsetDeleteRequestTopic(Struct, gc=False):
    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = []


class OffsetDeleteRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.OFFSET_DELETE
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = []


class OffsetDeleteResponsePartition(Struct, gc=False):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetDeleteResponseTopic(Struct, gc=False):
    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = []


class OffsetDeleteResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.OFFSET_DELETE
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
