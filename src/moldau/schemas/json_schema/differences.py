"""The differences of two JSON Schemas that a reader cannot bear, in the words of Confluent's registry."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.schemas.model import Incompatibility

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """`kind` is one of `SENTENCES`; the path leads through the keywords of the schema."""

    kind: str
    path: Path

    def below(self, path: Path) -> Difference:
        return Difference(self.kind, path + self.path) if path else self


_ABSENT = "The keyword at path '{path}' in the {reader} schema is not present in the {writer} schema"
_MORE = "The value at path '{path}' in the {reader} schema is more than its value in the {writer} schema"
_LESS = "The value at path '{path}' in the {reader} schema is less than its value in the {writer} schema"
_OTHER = "The value at path '{path}' is different between the {reader} and {writer} schema"
_FEWER = "An array or combined type at path '{path}' has fewer elements in the {reader} schema than the {writer} schema"
_LONGER = "An array or combined type at path '{path}' has more elements in the {reader} schema than the {writer} schema"
_TYPE = "A type at path '{path}' is different between the {reader} schema and the {writer} schema"
# "Unopen" is Confluent's word for closed and partially open.
_ADDED_TO_OPEN = (
    "The {reader} schema has an open content model and has a property or item at path '{path}' which is missing in "
    "the {writer} schema"
)
_ADDED_TO_UNOPEN = (
    "The {reader} schema has an unopen content model and has a required property at path '{path}' which is missing "
    "in the {writer} schema"
)
_REMOVED_FROM_CLOSED = (
    "The {reader} has a closed content model and is missing a property or item present at path '{path}' in the "
    "{writer} schema"
)
_REMOVED_NOT_COVERED = (
    "A property or item is missing in the {reader} schema but present at path '{path}' in the {writer} schema and "
    "is not covered by its partially open content model"
)
_ADDED_NOT_COVERED = (
    "The {reader} schema has a property or item at path '{path}' which is missing in the {writer} schema and is "
    "not covered by its partially open content model"
)

SENTENCES: dict[str, str] = {
    "SCHEMA_ADDED": _ABSENT,
    "TYPE_CHANGED": _TYPE,
    "TYPE_NARROWED": _TYPE,
    "MAX_LENGTH_ADDED": _ABSENT,
    "MAX_LENGTH_DECREASED": _LESS,
    "MIN_LENGTH_ADDED": _ABSENT,
    "MIN_LENGTH_INCREASED": _MORE,
    "PATTERN_ADDED": _ABSENT,
    "PATTERN_CHANGED": _OTHER,
    "MAXIMUM_ADDED": _ABSENT,
    "MAXIMUM_DECREASED": _LESS,
    "MINIMUM_ADDED": _ABSENT,
    "MINIMUM_INCREASED": _MORE,
    "EXCLUSIVE_MAXIMUM_ADDED": _ABSENT,
    "EXCLUSIVE_MAXIMUM_DECREASED": _LESS,
    "EXCLUSIVE_MINIMUM_ADDED": _ABSENT,
    "EXCLUSIVE_MINIMUM_INCREASED": _MORE,
    "MULTIPLE_OF_ADDED": _ABSENT,
    "MULTIPLE_OF_EXPANDED": _MORE,
    "MULTIPLE_OF_CHANGED": _OTHER,
    "REQUIRED_ATTRIBUTE_ADDED": _ABSENT,
    "MAX_PROPERTIES_ADDED": _ABSENT,
    "MAX_PROPERTIES_DECREASED": _LESS,
    "MIN_PROPERTIES_ADDED": _ABSENT,
    "MIN_PROPERTIES_INCREASED": _MORE,
    "ADDITIONAL_PROPERTIES_REMOVED": _ABSENT,
    "ADDITIONAL_PROPERTIES_NARROWED": _FEWER,
    "UNEVALUATED_PROPERTIES_REMOVED": _ABSENT,
    "UNEVALUATED_PROPERTIES_NARROWED": _FEWER,
    "DEPENDENCY_ARRAY_ADDED": _ABSENT,
    "DEPENDENCY_ARRAY_EXTENDED": _LONGER,
    "DEPENDENCY_ARRAY_CHANGED": _OTHER,
    "DEPENDENCY_SCHEMA_ADDED": _ABSENT,
    "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": _ADDED_TO_OPEN,
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL": _ADDED_TO_OPEN,
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": _ADDED_TO_OPEN,
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": _ADDED_TO_UNOPEN,
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": _REMOVED_FROM_CLOSED,
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": _REMOVED_NOT_COVERED,
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": _ADDED_NOT_COVERED,
    "MAX_ITEMS_ADDED": _ABSENT,
    "MAX_ITEMS_DECREASED": _LESS,
    "MIN_ITEMS_ADDED": _ABSENT,
    "MIN_ITEMS_INCREASED": _MORE,
    "MAX_CONTAINS_ADDED": _ABSENT,
    "MAX_CONTAINS_DECREASED": _LESS,
    "MIN_CONTAINS_ADDED": _ABSENT,
    "MIN_CONTAINS_INCREASED": _MORE,
    "UNIQUE_ITEMS_ADDED": _ABSENT,
    "ADDITIONAL_ITEMS_REMOVED": _ABSENT,
    "ADDITIONAL_ITEMS_NARROWED": _FEWER,
    "UNEVALUATED_ITEMS_REMOVED": _ABSENT,
    "UNEVALUATED_ITEMS_NARROWED": _FEWER,
    "ITEM_ADDED_TO_OPEN_CONTENT_MODEL": _ADDED_TO_OPEN,
    "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL": _REMOVED_FROM_CLOSED,
    "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": _REMOVED_NOT_COVERED,
    "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": _ADDED_NOT_COVERED,
    "ENUM_ARRAY_NARROWED": _FEWER,
    "ENUM_ARRAY_CHANGED": _TYPE,
    "COMBINED_TYPE_CHANGED": _TYPE,
    "COMBINED_TYPE_SUBSCHEMAS_CHANGED": _TYPE,
    "PRODUCT_TYPE_EXTENDED": _LONGER,
    "SUM_TYPE_NARROWED": _FEWER,
    "NOT_TYPE_EXTENDED": _LONGER,
    "TOO_COMPLEX": "The {reader} and the {writer} schema take too long to compare",
}


def told(difference: Difference) -> Incompatibility:
    """The same for who asked, with a sentence."""
    path = "#/" + "/".join(difference.path)
    description = SENTENCES[difference.kind].replace("{path}", path)
    return Incompatibility(difference.kind, path, description)
