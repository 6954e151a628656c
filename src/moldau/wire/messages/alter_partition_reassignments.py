"""AlterPartitionReassignments (45): give partitions other replicas, or stop doing so.

1 can say that the number of replicas has to stay as it is.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int16, Int32, since


class ReassignablePartition(Struct, gc=False):
    partition_index: Int32 = 0
    replicas: list[Int32] | None = None


class ReassignableTopic(Struct, gc=False):
    name: str = ""
    partitions: list[ReassignablePartition] = []


class AlterPartitionReassignmentsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ALTER_PARTITION_REASSIGNMENTS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = 0

    timeout_ms: Int32 = 60_000
    allow_replication_factor_change: Annotated[bool, since(1)] = True
    topics: list[ReassignableTopic] = []


class ReassignablePartitionResponse(Struct, gc=False):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = ""


class ReassignableTopicResponse(Struct, gc=False):
    name: str = ""
    partitions: list[ReassignablePartitionResponse] = []


class AlterPartitionReassignmentsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ALTER_PARTITION_REASSIGNMENTS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Annotated[bool, since(1), IGNORABLE] = True
    error_code: Int16 = 0
    error_message: str | None = ""
    responses: list[ReassignableTopicResponse] = []
