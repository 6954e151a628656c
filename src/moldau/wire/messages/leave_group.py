"""LeaveGroup (13): members leave a classic group at once, instead of by a session timeout.

3 takes many members, named by member id or by instance id, with an error for each; 4 is flexible, 5 says why.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int16, Int32, since, until


class MemberIdentity(Struct, gc=False):
    member_id: str = ""
    group_instance_id: str | None = None
    reason: Annotated[str | None, since(5), IGNORABLE] = None


class LeaveGroupRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.LEAVE_GROUP
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int] = 4

    group_id: str = ""
    member_id: Annotated[str, until(2)] = ""
    members: Annotated[list[MemberIdentity], since(3)] = []


class MemberResponse(Struct, gc=False):
    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: Int16 = 0


class LeaveGroupResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.LEAVE_GROUP
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int] = 4

    throttle_time_ms: Annotated[Int32, since(1), IGNORABLE] = 0
    error_code: Int16 = 0
    members: Annotated[list[MemberResponse], since(3)] = []
