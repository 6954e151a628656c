"""SyncGroup (14): the leader of a classic group hands in the assignment and every member takes its own part.

3 adds static members, 4 is flexible, 5 names the protocol in both directions so that a mismatch is noticed.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Bytes, Int16, Int32, since


class SyncGroupRequestAssignment(Struct, gc=False):
    member_id: str = ""
    assignment: Bytes = b""


class SyncGroupRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.SYNC_GROUP
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int] = 4

    group_id: str = ""
    generation_id: Int32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(3)] = None
    protocol_type: Annotated[str | None, since(5), IGNORABLE] = None
    protocol_name: Annotated[str | None, since(5), IGNORABLE] = None
    assignments: list[SyncGroupRequestAssignment] = []


class SyncGroupResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.SYNC_GROUP
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int] = 4

    throttle_time_ms: Annotated[Int32, since(1), IGNORABLE] = 0
    error_code: Int16 = 0
    protocol_type: Annotated[str | None, since(5), IGNORABLE] = None
    protocol_name: Annotated[str | None, since(5), IGNORABLE] = None
    assignment: Bytes = b""
