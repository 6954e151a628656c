"""FindCoordinator (10): which broker coordinates a group (type 0), a transactional id (1) or a share partition (2).

1 adds the type, 3 is flexible, 4 asks for many keys at once, 5 lets a transaction be aborted on error, 6 adds type 2.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int8, Int16, Int32, since, until, within


class FindCoordinatorRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.FIND_COORDINATOR
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_FROM: ClassVar[int] = 3

    key: Annotated[str, until(3)] = ""
    key_type: Annotated[Int8, since(1)] = 0
    coordinator_keys: Annotated[list[str], since(4)] = []


class Coordinator(Struct, gc=False):
    key: str = ""
    node_id: Int32 = 0
    host: str = ""
    port: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = ""


class FindCoordinatorResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.FIND_COORDINATOR
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE_FROM: ClassVar[int] = 3

    throttle_time_ms: Annotated[Int32, since(1), IGNORABLE] = 0
    error_code: Annotated[Int16, until(3)] = 0
    error_message: Annotated[str | None, within(1, 3), IGNORABLE] = ""
    node_id: Annotated[Int32, until(3)] = 0
    host: Annotated[str, until(3)] = ""
    port: Annotated[Int32, until(3)] = 0
    coordinators: Annotated[list[Coordinator], since(4)] = []
