"""Lower and upper limits: a reader may only move them outwards."""

from __future__ import annotations

from moldau.schemas.json_schema.differences import Difference
from moldau.schemas.json_schema.nodes import Limits

_STEMS = {
    "minLength": "MIN_LENGTH", "maxLength": "MAX_LENGTH", "minimum": "MINIMUM", "maximum": "MAXIMUM",
    "exclusiveMinimum": "EXCLUSIVE_MINIMUM", "exclusiveMaximum": "EXCLUSIVE_MAXIMUM",
    "minProperties": "MIN_PROPERTIES", "maxProperties": "MAX_PROPERTIES", "minItems": "MIN_ITEMS",
    "maxItems": "MAX_ITEMS", "minContains": "MIN_CONTAINS", "maxContains": "MAX_CONTAINS",
}  # fmt: skip


def compare_limits(original: Limits, update: Limits) -> list[Difference]:
    """Of any kind of value: the keywords tell which are upper ones."""
    found = []
    for keyword, limit in update.items():
        stem = _STEMS[keyword]
        if keyword not in original:
            found.append(Difference(f"{stem}_ADDED", (keyword,)))
        elif "MAX" in stem and limit < original[keyword]:
            found.append(Difference(f"{stem}_DECREASED", (keyword,)))
        elif "MIN" in stem and limit > original[keyword]:
            found.append(Difference(f"{stem}_INCREASED", (keyword,)))
    return found
