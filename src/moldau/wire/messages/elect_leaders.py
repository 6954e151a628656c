"""ElectLeaders (43): have the preferred, or any living, replica lead a partition.

1 has the kind of election and an error of the whole request, 2 is flexible.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int8, Int16, Int32, since


class TopicPartitions(Struct, gc=False):
    topic: str = ""
    partitions: list[Int32] = []


class ElectLeadersRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ELECT_LEADERS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 2

    election_type: Annotated[Int8, since(1)] = 0
    topic_partitions: list[TopicPartitions] | None = []
    timeout_ms: Int32 = 60_000


class PartitionResult(Struct, gc=False):
    partition_id: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = ""


class ReplicaElectionResult(Struct, gc=False):
    topic: str = ""
    partition_result: list[PartitionResult] = []


class ElectLeadersResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ELECT_LEADERS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(1)] = 0
    replica_election_results: list[ReplicaElectionResult] = []
