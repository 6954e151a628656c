"""DescribeAcls (29): the access rules that match a filter.

1 has patterns of resource names, 2 is flexible, 3 has users as resources.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int8, Int16, Int32

LITERAL = 3


class DescribeAclsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_ACLS
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE_FROM: ClassVar[int] = 2

    resource_type_filter: Int8 = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: Int8 = LITERAL
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class AclDescription(Struct, gc=False):
    principal: str = ""
    host: str = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DescribeAclsResource(Struct, gc=False):
    resource_type: Int8 = 0
    resource_name: str = ""
    pattern_type: Int8 = LITERAL
    acls: list[AclDescription] = []


class DescribeAclsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_ACLS
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE_FROM: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = ""
    resources: list[DescribeAclsResource] = []
