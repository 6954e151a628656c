"""CreateAcls (30): new access rules.

1 has patterns of resource names, 2 is flexible, 3 has users as resources.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int8, Int16, Int32

LITERAL = 3


class AclCreation(Struct, gc=False):
    resource_type: Int8 = 0
    resource_name: str = ""
    resource_pattern_type: Int8 = LITERAL
    principal: str = ""
    host: str = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class CreateAclsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.CREATE_ACLS
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE_FROM: ClassVar[int] = 2

    creations: list[AclCreation] = []


class AclCreationResult(Struct, gc=False):
    error_code: Int16 = 0
    error_message: str | None = ""


class CreateAclsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.CREATE_ACLS
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE_FROM: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    results: list[AclCreationResult] = []
