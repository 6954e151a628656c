"""DeleteGroups (42): forget groups without members, and all that they committed. 2 is flexible."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int16, Int32


class DeleteGroupsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DELETE_GROUPS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 2

    groups_names: list[str] = []


class DeletableGroupResult(Struct, gc=False):
    group_id: str = ""
    error_code: Int16 = 0


class DeleteGroupsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DELETE_GROUPS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    results: list[DeletableGroupResult] = []
