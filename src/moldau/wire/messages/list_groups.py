"""ListGroups (16): the groups that this broker coordinates.

3 is flexible, 4 filters by state and tells it, 5 does the same with the type.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int16, Int32, since


class ListGroupsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.LIST_GROUPS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int] = 3

    states_filter: Annotated[list[str], since(4)] = []
    types_filter: Annotated[list[str], since(5)] = []


class ListedGroup(Struct, gc=False):
    group_id: str = ""
    protocol_type: str = ""
    group_state: Annotated[str, since(4), IGNORABLE] = ""
    group_type: Annotated[str, since(5), IGNORABLE] = ""


class ListGroupsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.LIST_GROUPS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int] = 3

    throttle_time_ms: Annotated[Int32, since(1), IGNORABLE] = 0
    error_code: Int16 = 0
    groups: list[ListedGroup] = []
