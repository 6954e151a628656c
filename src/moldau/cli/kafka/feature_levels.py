"""The features of Apache Kafka 4.3.1, their levels, and the levels of metadata.version by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from moldau.cli.failures import UsageError

METADATA = "metadata.version"
FIRST_LEVEL = 7
# From `FIRST_LEVEL` on.
VERSIONS = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0", "4.4-IV0"),
)
IN_PRODUCTION = "4.3-IV0"
RELEASE_PARTS = 2
# The first metadata.version that has each level of a feature, from level 0 on.
FEATURES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "kraft.version": ("3.3-IV3", "3.9-IV0"),
        "transaction.version": ("3.3-IV3", "4.0-IV2", "4.0-IV2"),
        "group.version": ("3.3-IV3", "4.0-IV0"),
        "eligible.leader.replicas.version": ("3.3-IV3", "4.1-IV0"),
        "share.version": ("3.3-IV3", "4.2-IV0"),
        "streams.version": ("3.3-IV3", "4.2-IV1"),
    }
)
_NEEDED: Mapping[tuple[str, int], str] = MappingProxyType({("eligible.leader.replicas.version", 1): "4.0-IV1"})


def metadata_name(level: int) -> str | None:
    at = level - FIRST_LEVEL
    return VERSIONS[at] if 0 <= at < len(VERSIONS) else None


def metadata_level(version: str | None) -> int:
    """Of a version as 4.2-IV1, or of a release as 4.2 or 4.2.1, which is the newest of it in production."""
    text = IN_PRODUCTION if version is None else version
    parts = text.split(".")
    name = ".".join(parts[:RELEASE_PARTS]) if len(parts) > RELEASE_PARTS else text
    released = VERSIONS[: VERSIONS.index(IN_PRODUCTION) + 1]
    found = [each for each in released if each.partition("-")[0] == name] or [each for each in VERSIONS if each == name]
    if not found:
        raise UsageError(f"Unknown metadata.version '{text}'. Supported metadata.version are: {', '.join(VERSIONS)}")
    return FIRST_LEVEL + VERSIONS.index(found[-1])


def default_level(feature: str, level: int) -> int:
    """What a cluster of this metadata.version begins with."""
    return max(
        own for own, since in enumerate(FEATURES[feature]) if own == 0 or FIRST_LEVEL + VERSIONS.index(since) <= level
    )


def dependencies(feature: str, level: int) -> dict[str, int]:
    if feature not in FEATURES:
        raise UsageError(f"Unknown feature: {feature}")
    if not 0 <= level < len(FEATURES[feature]):
        raise UsageError(f"No feature:{feature} with feature level {level}")
    needed = _NEEDED.get((feature, level))
    return {} if needed is None else {METADATA: FIRST_LEVEL + VERSIONS.index(needed)}
