"""AlterConfigs (33): replace the whole configuration of a topic or broker; what is not named returns to its default.

2 is flexible. Today's clients use IncrementalAlterConfigs.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int8, Int16, Int32


class AlterableConfig(Struct, gc=False):
    name: str = ""
    value: str | None = ""


class AlterConfigsResource(Struct, gc=False):
    resource_type: Int8 = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = []


class AlterConfigsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ALTER_CONFIGS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 2

    resources: list[AlterConfigsResource] = []
    validate_only: bool = False


class AlterConfigsResourceResponse(Struct, gc=False):
    error_code: Int16 = 0
    error_message: str | None = ""
    resource_type: Int8 = 0
    resource_name: str = ""


class AlterConfigsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ALTER_CONFIGS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
