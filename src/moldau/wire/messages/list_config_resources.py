"""ListConfigResources (74): the names of everything that can be configured.

Version 0 knew client metrics only, which is type 16.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int8, Int16, Int32, since


class ListConfigResourcesRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.LIST_CONFIG_RESOURCES
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = 0

    resource_types: Annotated[list[Int8], since(1)] = []


class ConfigResource(Struct, gc=False):
    resource_name: str = ""
    resource_type: Annotated[Int8, since(1), IGNORABLE] = 16


class ListConfigResourcesResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.LIST_CONFIG_RESOURCES
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: list[ConfigResource] = []
