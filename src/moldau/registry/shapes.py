"""What records of `_schemas` have to look like before anything is computed from them: others may write there, too.

Only what is used is looked at; what is unknown is passed over, as newer registries write it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec

INT_MAX = (1 << 31) - 1
Level = Literal["NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"]
Mode = Literal["READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD"]
Id = Annotated[int, msgspec.Meta(ge=0, le=INT_MAX)]
Version = Annotated[int, msgspec.Meta(ge=1, le=INT_MAX)]
T = TypeVar("T")

# Their fields have Confluent's names.


class ReferenceShape(msgspec.Struct):
    name: str
    subject: str
    version: Annotated[int, msgspec.Meta(ge=-1, le=INT_MAX)]


class MetadataShape(msgspec.Struct):
    tags: dict[str, list[str]] | None = None
    properties: dict[str, str] | None = None
    sensitive: list[str] | None = None


class RuleShape(msgspec.Struct):
    name: str
    type: str | None = None
    tags: list[str] | None = None
    params: dict[str, str] | None = None


class RuleSetShape(msgspec.Struct):
    migrationRules: list[RuleShape] | None = None
    domainRules: list[RuleShape] | None = None
    encodingRules: list[RuleShape] | None = None


class SchemaShape(msgspec.Struct):
    id: Id
    schema: str
    schemaType: str | None = None
    references: list[ReferenceShape] | None = None
    metadata: MetadataShape | None = None
    ruleSet: RuleSetShape | None = None
    deleted: bool | None = None
    md5: str | None = None


class ConfigShape(msgspec.Struct):
    compatibilityLevel: Level | None = None
    compatibilityGroup: str | None = None
    alias: str | None = None
    normalize: bool | None = None
    defaultMetadata: MetadataShape | None = None
    overrideMetadata: MetadataShape | None = None
    defaultRuleSet: RuleSetShape | None = None
    overrideRuleSet: RuleSetShape | None = None


class ModeShape(msgspec.Struct):
    mode: Mode | None = None


class DeletionShape(msgspec.Struct):
    version: Version


class VersionKeyShape(msgspec.Struct):
    subject: str
    version: Version


class SubjectKeyShape(msgspec.Struct):
    subject: str


class SettingsKeyShape(msgspec.Struct):
    subject: str | None = None


class ContextKeyShape(msgspec.Struct):
    context: str
    tenant: str = "default"


def shaped(content: Any, shape: type[T]) -> T:
    """Raises ValueError, which says what is wrong."""
    return msgspec.convert(content, shape)
