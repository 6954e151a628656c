"""Records of `_schemas` as Confluent's registry writes them: JSON keys with a `keytype`, JSON values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from moldau.registry import shapes
from moldau.schemas.model import Reference

Settings: TypeAlias = Mapping[str, Any]
AVRO = "AVRO"
T = TypeVar("T", str, str | None)


@dataclass(frozen=True, slots=True)
class SchemaKey:
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class ConfigKey:
    subject: str | None


@dataclass(frozen=True, slots=True)
class ModeKey:
    subject: str | None


@dataclass(frozen=True, slots=True)
class DeleteSubjectKey:
    subject: str


@dataclass(frozen=True, slots=True)
class ClearSubjectKey:
    subject: str


@dataclass(frozen=True, slots=True)
class ContextKey:
    context: str
    tenant: str = "default"


@dataclass(frozen=True, slots=True)
class NoopKey:
    """A new leader's first record: whoever led before can't write behind it."""


Key: TypeAlias = SchemaKey | ConfigKey | ModeKey | DeleteSubjectKey | ClearSubjectKey | ContextKey | NoopKey


@dataclass(frozen=True, slots=True)
class StoredSchema:
    subject: str
    version: int
    id: int
    text: str
    type: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: Settings | None = None
    rule_set: Settings | None = None
    is_deleted: bool = False
    md5: str | None = None
    """As it was stored, where that is not computed of the rest."""
    timestamp_ms: int = field(default=0, compare=False)

    @property
    def key(self) -> SchemaKey:
        return SchemaKey(self.subject, self.version)


Value: TypeAlias = StoredSchema | Settings | None
"""None is a tombstone, or a NOOP."""


@dataclass(frozen=True, slots=True)
class Entry:
    key: Key
    value: Value = None


DELETIONS: Mapping[str, type[DeleteSubjectKey | ClearSubjectKey]] = {
    "DELETE_SUBJECT": DeleteSubjectKey, "CLEAR_SUBJECT": ClearSubjectKey,
}  # fmt: skip
SETTINGS: Mapping[str, type[ConfigKey | ModeKey]] = {"CONFIG": ConfigKey, "MODE": ModeKey}
VALUES: Mapping[type, type] = {
    ConfigKey: shapes.ConfigShape, ModeKey: shapes.ModeShape, DeleteSubjectKey: shapes.DeletionShape,
}  # fmt: skip


class Unreadable(ValueError):
    """A record of another kind, or damaged; the text says what it has."""


def encoded(entry: Entry) -> tuple[bytes, bytes | None]:
    return _json(_key_fields(entry.key)), None if entry.value is None else _json(_value_fields(entry))


def _json(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _key_fields(key: Key) -> dict[str, Any]:
    match key:
        case SchemaKey(subject, version):
            return {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
        case ConfigKey(subject):
            return {"keytype": "CONFIG", **_named(subject), "magic": 0}
        case ModeKey(subject):
            return {"keytype": "MODE", **_named(subject), "magic": 0}
        case DeleteSubjectKey(subject):
            return {"keytype": "DELETE_SUBJECT", "subject": subject, "magic": 0}
        case ClearSubjectKey(subject):
            return {"keytype": "CLEAR_SUBJECT", "subject": subject, "magic": 0}
        case ContextKey(context, tenant):
            return {"keytype": "CONTEXT", "tenant": tenant, "context": context, "magic": 0}
        case NoopKey():
            return {"keytype": "NOOP", "magic": 0}


def _named(subject: str | None) -> dict[str, Any]:
    return {} if subject is None else {"subject": subject}


def _value_fields(entry: Entry) -> dict[str, Any]:
    if not isinstance(entry.value, StoredSchema):
        return dict(entry.value or {})
    schema = entry.value
    found: dict[str, Any] = {"subject": schema.subject, "version": schema.version, "id": schema.id}
    if schema.md5 is not None:
        found["md5"] = schema.md5
    if schema.type != AVRO:
        found["schemaType"] = schema.type
    if schema.references:
        found["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version} for each in schema.references
        ]
    if schema.metadata is not None:
        found["metadata"] = schema.metadata
    if schema.rule_set is not None:
        found["ruleSet"] = schema.rule_set
    return {**found, "schema": schema.text, "deleted": schema.is_deleted}


def decoded(key: bytes | None, value: bytes | None, *, timestamp_ms: int = 0) -> Entry:
    """Raises Unreadable."""
    try:
        fields = json.loads(key or b"null")
        found = _key(fields)
        if value is None or isinstance(found, NoopKey):
            return Entry(found, None)
        content = json.loads(value)
        if content is None:
            return Entry(found, None)
        if isinstance(found, SchemaKey):
            return Entry(found, _schema(found, content, timestamp_ms))
        shapes.shaped(content, VALUES.get(type(found), dict))
        return Entry(found, content)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as wrong:
        raise Unreadable(f"{(key or b'')[:200]!r}: {wrong}") from None


def _key(fields: Any) -> Key:
    kind = fields["keytype"]
    if kind == "NOOP":
        return NoopKey()
    if kind == "SCHEMA":
        version = shapes.shaped(fields, shapes.VersionKeyShape)
        return SchemaKey(_sayable(version.subject), version.version)
    if kind == "CONTEXT":
        context = shapes.shaped(fields, shapes.ContextKeyShape)
        return ContextKey(_sayable(context.context), context.tenant)
    if kind in DELETIONS:
        return DELETIONS[kind](_sayable(shapes.shaped(fields, shapes.SubjectKeyShape).subject))
    if kind in SETTINGS:
        return SETTINGS[kind](_sayable(shapes.shaped(fields, shapes.SettingsKeyShape).subject))
    raise Unreadable(f"the kind {kind!r} is not known")


def _sayable(name: T) -> T:
    """Raises ValueError for half of a surrogate pair, which no request can name."""
    if isinstance(name, str):
        name.encode()
    return name


def _schema(key: SchemaKey, fields: Any, timestamp_ms: int) -> StoredSchema:
    found = shapes.shaped(fields, shapes.SchemaShape)
    return StoredSchema(
        subject=key.subject,
        version=key.version,
        id=found.id,
        text=found.schema,
        type=found.schemaType or AVRO,
        references=tuple(Reference(each.name, each.subject, each.version) for each in found.references or ()),
        metadata=fields.get("metadata"),
        rule_set=fields.get("ruleSet"),
        is_deleted=bool(found.deleted),
        md5=found.md5,
        timestamp_ms=timestamp_ms,
    )
