"""The levels of the feature `metadata.version` by their names, which tell of Kafka's releases."""

from __future__ import annotations

METADATA = "metadata.version"
FIRST_LEVEL = 7
# From `FIRST_LEVEL` on.
NAMES = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0", "4.4-IV0"),
)


def metadata_name(level: int) -> str | None:
    at = level - FIRST_LEVEL
    return NAMES[at] if 0 <= at < len(NAMES) else None
