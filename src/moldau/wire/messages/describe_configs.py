"""DescribeConfigs (32): what topics, brokers and groups are configured with, and where each value comes from.

1 brings the source of a value and its synonyms, 3 its type and documentation, 4 is flexible.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int8, Int16, Int32, since


class DescribeConfigsResource(Struct, gc=False):
    resource_type: Int8 = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = []


class DescribeConfigsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_CONFIGS
    VERSIONS: ClassVar[tuple[int, int]] = (1, 4)
    FLEXIBLE_FROM: ClassVar[int] = 4

    resources: list[DescribeConfigsResource] = []
    include_synonyms: bool = False
    include_documentation: Annotated[bool, since(3)] = False


class DescribeConfigsSynonym(Struct, gc=False):
    name: str = ""
    value: str | None = ""
    source: Int8 = 0


class DescribeConfigsResourceResult(Struct, gc=False):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: Int8 = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = []
    config_type: Annotated[Int8, since(3), IGNORABLE] = 0
    documentation: Annotated[str | None, since(3), IGNORABLE] = ""


class DescribeConfigsResult(Struct, gc=False):
    error_code: Int16 = 0
    error_message: str | None = ""
    resource_type: Int8 = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = []


class DescribeConfigsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_CONFIGS
    VERSIONS: ClassVar[tuple[int, int]] = (1, 4)
    FLEXIBLE_FROM: ClassVar[int] = 4

    throttle_time_ms: Int32 = 0
    results: list[DescribeConfigsResult] = []
