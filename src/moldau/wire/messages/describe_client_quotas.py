"""DescribeClientQuotas (48): the quotas of the entities that a filter matches; 1 is flexible."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int8, Int16, Int32


class ComponentData(Struct, gc=False):
    entity_type: str = ""
    match_type: Int8 = 0
    match: str | None = ""


class DescribeClientQuotasRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_CLIENT_QUOTAS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = 1

    components: list[ComponentData] = []
    strict: bool = False


class EntityData(Struct, gc=False):
    entity_type: str = ""
    entity_name: str | None = ""


class ValueData(Struct, gc=False):
    key: str = ""
    value: float = 0.0


class EntryData(Struct, gc=False):
    entity: list[EntityData] = []
    values: list[ValueData] = []


class DescribeClientQuotasResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_CLIENT_QUOTAS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = 1

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = ""
    entries: list[EntryData] | None = []
