"""ApiVersions (18): which APIs and versions the broker speaks; the first request of nearly every connection.

The reply's header is always of version 0, because its sender can't know yet what the client reads. From 3 on, which is
flexible, the client says its name. Clients before 4 reject a feature whose lowest version is 0.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int16, Int32, Int64, since, tagged


class ApiVersionsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.API_VERSIONS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_FROM: ClassVar[int] = 3

    client_software_name: Annotated[str, since(3), IGNORABLE] = ""
    client_software_version: Annotated[str, since(3), IGNORABLE] = ""


class ApiVersion(Struct, gc=False):
    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


class SupportedFeatureKey(Struct, gc=False):
    name: str = ""
    min_version: Int16 = 0
    max_version: Int16 = 0


class FinalizedFeatureKey(Struct, gc=False):
    name: str = ""
    max_version_level: Int16 = 0
    min_version_level: Int16 = 0


class ApiVersionsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.API_VERSIONS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_FROM: ClassVar[int] = 3

    error_code: Int16 = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: Annotated[Int32, since(1), IGNORABLE] = 0
    supported_features: Annotated[list[SupportedFeatureKey], tagged(0, since=3), IGNORABLE] = []
    finalized_features_epoch: Annotated[Int64, tagged(1, since=3), IGNORABLE] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], tagged(2, since=3), IGNORABLE] = []
    zk_migration_ready: Annotated[bool, tagged(3, since=3), IGNORABLE] = False
