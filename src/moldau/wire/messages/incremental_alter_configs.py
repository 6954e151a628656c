"""IncrementalAlterConfigs (44): set, delete, append to or subtract from single configuration values.

The operation is 0 for set, 1 for delete, 2 for append and 3 for subtract. 1 is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int8, Int16, Int32


class AlterableConfig(Struct, gc=False):
    name: str = ""
    config_operation: Int8 = 0
    value: str | None = ""


class AlterConfigsResource(Struct, gc=False):
    resource_type: Int8 = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = []


class IncrementalAlterConfigsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.INCREMENTAL_ALTER_CONFIGS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = 1

    resources: list[AlterConfigsResource] = []
    validate_only: bool = False


class AlterConfigsResourceResponse(Struct, gc=False):
    error_code: Int16 = 0
    error_message: str | None = ""
    resource_type: Int8 = 0
    resource_name: str = ""


class IncrementalAlterConfigsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.INCREMENTAL_ALTER_CONFIGS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = 1

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
