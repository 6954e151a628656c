"""UpdateFeatures (57): raise or lower the levels of a cluster's features.

0 only says whether a downgrade is allowed; 1 says which kind of change it is and can try without doing, and 2 has one
error for the whole request instead of one for each feature.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int8, Int16, Int32, since, until


class FeatureUpdateKey(Struct, gc=False):
    feature: str = ""
    max_version_level: Int16 = 0
    allow_downgrade: Annotated[bool, until(0)] = False
    upgrade_type: Annotated[Int8, since(1)] = 1


class UpdateFeaturesRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.UPDATE_FEATURES
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 0

    timeout_ms: Int32 = 60_000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: Annotated[bool, since(1)] = False


class UpdatableFeatureResult(Struct, gc=False):
    feature: str = ""
    error_code: Int16 = 0
    error_message: str | None = ""


class UpdateFeaturesResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.UPDATE_FEATURES
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = ""
    results: Annotated[list[UpdatableFeatureResult], until(1), IGNORABLE] = []
