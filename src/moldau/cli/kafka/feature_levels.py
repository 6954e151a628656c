"""The features of Apache Kafka 4.3.1, their levels, and the levels of metadata.version by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from moldau.cli.failures import UsageError
from moldau.core.metadata_versions import FIRST_LEVEL, METADATA, NAMES

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


def metadata_level(version: str | None) -> int:
    """Of a version as 4.2-IV1, or of a release as 4.2 or 4.2.1, which is the newest of it in production."""
    text = IN_PRODUCTION if version is None else version
    parts = text.split(".")
    name = ".".join(parts[:RELEASE_PARTS]) if len(parts) > RELEASE_PARTS else text
    released = NAMES[: NAMES.index(IN_PRODUCTION) + 1]
    found = [each for each in released if each.partition("-")[0] == name] or [each for each in NAMES if each == name]
    if not found:
        raise UsageError(f"Unknown metadata.version '{text}'. Supported metadata.version are: {', '.join(NAMES)}")
    return FIRST_LEVEL + NAMES.index(found[-1])


def default_level(feature: str, level: int) -> int:
    """What a cluster of this metadata.version begins with."""
    return max(
        own for own, since in enumerate(FEATURES[feature]) if own == 0 or FIRST_LEVEL + NAMES.index(since) <= level
    )


def dependencies(feature: str, level: int) -> dict[str, int]:
    if feature not in FEATURES:
        raise UsageError(f"Unknown feature: {feature}")
    if not 0 <= level < len(FEATURES[feature]):
        raise UsageError(f"No feature:{feature} with feature level {level}")
    needed = _NEEDED.get((feature, level))
    return {} if needed is None else {METADATA: FIRST_LEVEL + NAMES.index(needed)}
