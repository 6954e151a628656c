"""Heartbeat (12): a member of a classic group is alive, and hears whether the group rebalances.

3 adds static members, 4 is flexible.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int16, Int32, since


class HeartbeatRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.HEARTBEAT
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_FROM: ClassVar[int] = 4

    group_id: str = ""
    generation_id: Int32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(3)] = None


class HeartbeatResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.HEARTBEAT
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_FROM: ClassVar[int] = 4

    throttle_time_ms: Annotated[Int32, since(1), IGNORABLE] = 0
    error_code: Int16 = 0
