"""DescribeGroups (15): the state and the members of classic groups.

3 adds the operations that the asker is allowed, 4 static members, 5 is flexible, and 6 answers for a group that doesn't
exist with an error, where the versions before call it dead.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Bytes, Int16, Int32, since


class DescribeGroupsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_GROUPS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_FROM: ClassVar[int] = 5

    groups: list[str] = []
    include_authorized_operations: Annotated[bool, since(3)] = False


class DescribedGroupMember(Struct, gc=False):
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(4), IGNORABLE] = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: Bytes = b""
    member_assignment: Bytes = b""


class DescribedGroup(Struct, gc=False):
    error_code: Int16 = 0
    error_message: Annotated[str | None, since(6)] = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: Annotated[Int32, since(3)] = -(2**31)


class DescribeGroupsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_GROUPS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_FROM: ClassVar[int] = 5

    throttle_time_ms: Annotated[Int32, since(1), IGNORABLE] = 0
    groups: list[DescribedGroup] = []
