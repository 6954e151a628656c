"""JoinGroup (11): enter a classic group or take part in its next generation; the answer waits until all have joined.

1 separates the rebalance timeout from the session's, 4 gives a new member its id first and has it join again with that,
5 adds static members, 6 is flexible, 7 answers with the protocol's type, 8 says why a member joins, and 9 spares a
leader who already knows it the computing of an assignment. Only the leader's answer has members.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Bytes, Int16, Int32, nullable, since


class JoinGroupRequestProtocol(Struct, gc=False):
    name: str = ""
    metadata: Bytes = b""


class JoinGroupRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.JOIN_GROUP
    VERSIONS: ClassVar[tuple[int, int]] = (0, 9)
    FLEXIBLE_FROM: ClassVar[int] = 6

    group_id: str = ""
    session_timeout_ms: Int32 = 0
    # In version 0, which has no place for it, the session timeout counts for both.
    rebalance_timeout_ms: Annotated[Int32, since(1), IGNORABLE] = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(5)] = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: Annotated[str | None, since(8), IGNORABLE] = None


class JoinGroupResponseMember(Struct, gc=False):
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(5), IGNORABLE] = None
    metadata: Bytes = b""


class JoinGroupResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.JOIN_GROUP
    VERSIONS: ClassVar[tuple[int, int]] = (0, 9)
    FLEXIBLE_FROM: ClassVar[int] = 6

    throttle_time_ms: Annotated[Int32, since(2), IGNORABLE] = 0
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: Annotated[str | None, since(7), IGNORABLE] = None
    protocol_name: Annotated[str | None, nullable(7)] = ""
    leader: str = ""
    skip_assignment: Annotated[bool, since(9)] = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = []
