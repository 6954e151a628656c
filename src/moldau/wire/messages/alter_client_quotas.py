"""AlterClientQuotas (49): quotas of users, client ids and addresses to be set and to be taken away; 1 is flexible."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int16, Int32


class EntityData(Struct, gc=False):
    entity_type: str = ""
    entity_name: str | None = ""


class OpData(Struct, gc=False):
    key: str = ""
    value: float = 0.0
    remove: bool = False


class EntryData(Struct, gc=False):
    entity: list[EntityData] = []
    ops: list[OpData] = []


class AlterClientQuotasRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ALTER_CLIENT_QUOTAS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = 1

    entries: list[EntryData] = []
    validate_only: bool = False


class AlteredEntry(Struct, gc=False):
    error_code: Int16 = 0
    error_message: str | None = ""
    entity: list[EntityData] = []


class AlterClientQuotasResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ALTER_CLIENT_QUOTAS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = 1

    throttle_time_ms: Int32 = 0
    entries: list[AlteredEntry] = []
