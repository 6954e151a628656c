"""The records of `__consumer_offsets` as Kafka lays them out: a key that names its kind, a value with its version.

Version 4 of both values is flexible. Kafka writes offsets in version 4, in version 1 those that a client gave a time
to live, and groups in version 3; all versions are read.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.core.errors import ProtocolViolation
from moldau.core.ids import ZERO_UUID
from moldau.wire.schema import IGNORABLE, NEVER, Bytes, Int32, Int64, Uuid, nullable, since, tagged, within

SHORT = Layout(">h")  # every key begins with its kind, every value with its version


class OffsetCommitKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group: str = ""
    topic: str = ""
    partition: Int32 = 0


class OffsetCommitValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_FROM: ClassVar[int] = 4

    offset: Int64 = 0
    leader_epoch: Annotated[Int32, since(3), IGNORABLE] = -1
    metadata: str = ""
    commit_timestamp: Int64 = 0
    expire_timestamp: Annotated[Int64, within(1, 1), IGNORABLE] = -1
    topic_id: Annotated[Uuid, tagged(0, since=4), IGNORABLE] = ZERO_UUID


class GroupMetadataKey(Struct, gc=False):
    API_KEY: ClassVar[int] = 2
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    group: str = ""


class MemberMetadata(Struct, gc=False):
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(3), nullable(3), IGNORABLE] = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: Annotated[Int32, since(1), IGNORABLE] = -1
    session_timeout: Int32 = 0
    subscription: Bytes = b""
    assignment: Bytes = b""


class GroupMetadataValue(Struct, gc=False):
    API_KEY: ClassVar[int] = 2
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_FROM: ClassVar[int] = 4

    protocol_type: str = ""
    generation: Int32 = 0
    protocol: str | None = ""
    leader: str | None = ""
    current_state_timestamp: Annotated[Int64, since(2), IGNORABLE] = -1
    members: list[MemberMetadata] = []


def version_of(view: memoryview) -> int:
    if len(view) < SHORT.size:
        raise ProtocolViolation(f"a record of {len(view)} bytes has no version")
    version: int = SHORT.unpack_from(view)[0]
    return version


def known_version(value: memoryview, versions: tuple[int, int]) -> int:
    version = version_of(value)
    if not versions[0] <= version <= versions[1]:
        raise ProtocolViolation(f"a record's value has version {version}; known are {versions[0]} to {versions[1]}")
    return version
