"""The control records of Apache Kafka's quorum, as it lays them out."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct, field

from moldau.core.ids import ZERO_UUID
from moldau.wire.schema import Int16, Int32, Int64, UInt16, Uuid, since


class Voter(Struct, gc=False):
    voter_id: Int32 = 0
    voter_directory_id: Annotated[Uuid, since(1)] = ZERO_UUID


class LeaderChangeMessage(Struct, gc=False):
    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = 0

    version: Int16 = 0
    leader_id: Int32 = 0
    voters: list[Voter] = []
    granting_voters: list[Voter] = []


class SnapshotHeaderRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    version: Int16 = 0
    last_contained_log_timestamp: Int64 = 0


class SnapshotFooterRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    version: Int16 = 0


class KRaftVersionRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    version: Int16 = 0
    k_raft_version: Int16 = 0


class Endpoint(Struct, gc=False):
    name: str = ""
    host: str = ""
    port: UInt16 = 0


class KRaftVersionFeature(Struct, gc=False):
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


class VotersVoter(Struct, gc=False):
    voter_id: Int32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    endpoints: list[Endpoint] = []
    k_raft_version_feature: KRaftVersionFeature = field(default_factory=KRaftVersionFeature)


class VotersRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    version: Int16 = 0
    voters: list[VotersVoter] = []
