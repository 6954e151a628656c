"""Bodies of requests, checked by Confluent's rules: what is unknown is passed over, what has another type is 422."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.registry import refusals
from moldau.registry.names import INT_MAX
from moldau.registry.records import AVRO, Settings
from moldau.schemas.model import Reference, SchemaType
from moldau.schemas.tagging import Tagging

LEVELS = (
    "NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE",
)  # fmt: skip
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
TEXT_BYTES_MAX = 1_000_000  # a record of `_schemas` with everything else has to be below Kafka's megabyte
REFERENCES_MAX = 200  # of one schema; each is looked up and parsed before it
MORE_BYTES_MAX = 200_000  # of metadata and rules
TAGGED_MAX = 500  # records and fields in one request, each of which is looked for
ENTITY_TYPES = ("sr_record", "sr_field")
TAGS_OF_VERSION, TAGS_OF_SCHEMA = ("tagsToAdd", "tagsToRemove"), ("schemaTagsToAdd", "schemaTagsToRemove")
MIGRATION_MODES = ("UPGRADE", "DOWNGRADE", "UPDOWN")
DOMAIN_MODES = ("WRITE", "READ", "WRITEREAD")
RULE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
TEXTS = ("compatibilityGroup", "alias", "compatibilityPolicy", "aliasForDeks")
FLAGS = ("normalize", "validateFields", "validateNewSchemas", "validateRules")
METADATA = ("defaultMetadata", "overrideMetadata")
RULE_SETS = ("defaultRuleSet", "overrideRuleSet")


@dataclass(frozen=True, slots=True)
class SchemaBody:
    text: str
    type: SchemaType = SchemaType.AVRO
    references: tuple[Reference, ...] = ()
    metadata: Settings | None = None
    rule_set: Settings | None = None
    version: int = 0
    """0 for the next one, -1 for the latest."""
    id: int = -1
    taggings: tuple[Tagging, ...] = ()
    """What is to be done to its text first."""


def schema_body(body: Any) -> SchemaBody:
    fields = _object(body)
    text = _text(fields, "schema") or ""
    check_size(text)
    kind = _text(fields, "schemaType") or AVRO
    if kind not in set(SchemaType):
        raise refusals.invalid_schema(f"Invalid schema type {kind}")
    _check_more(fields, ("metadata", "ruleSet", *TAGS_OF_SCHEMA))
    return SchemaBody(
        text=text,
        type=SchemaType(kind),
        references=_references(fields.get("references")),
        metadata=metadata(fields.get("metadata")),
        rule_set=rule_set(fields.get("ruleSet")),
        version=_number(fields, "version", 0),
        id=_number(fields, "id", -1),
        taggings=_taggings(fields, *TAGS_OF_SCHEMA),
    )


def check_size(text: str) -> None:
    """Raises 42209."""
    if len(text.encode("utf-8", "surrogatepass")) > TEXT_BYTES_MAX:
        raise refusals.schema_too_large(f"Schema is larger than {TEXT_BYTES_MAX} bytes")


def _check_more(fields: Mapping[str, Any], names: tuple[str, ...]) -> None:
    if len(repr([fields.get(each) for each in names])) > MORE_BYTES_MAX:
        raise refusals.schema_too_large(f"Tags, metadata and rules are larger than {MORE_BYTES_MAX} bytes")


def _object(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise refusals.unprocessable("Request body is no JSON object")
    return body


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise refusals.unprocessable(f"{name} is no string")
    return _stored(value)


def _stored(value: str | None) -> str | None:
    """What has no UTF-8 can't be written."""
    if value is not None and any("\ud800" <= each <= "\udfff" for each in value):
        raise refusals.unprocessable("half of a surrogate pair")
    return value


def _number(fields: Mapping[str, Any], name: str, default: int) -> int:
    value = fields.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value <= INT_MAX:
        raise refusals.unprocessable(f"{name} is no number of a schema")
    return value


def _references(value: Any) -> tuple[Reference, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise refusals.unprocessable("references is no array")
    if len(value) > REFERENCES_MAX:
        raise refusals.invalid_schema(f"{len(value)} references; at most {REFERENCES_MAX} are allowed")
    found = []
    for each in value:
        fields = _object(each)
        name, subject = _text(fields, "name"), _text(fields, "subject")
        if name is None or subject is None:
            raise refusals.invalid_schema("a reference needs name, subject and version")
        found.append(Reference(name, subject, _number(fields, "version", -1)))
    return tuple(found)


def metadata(value: Any) -> Settings | None:
    if value is None:
        return None
    fields = _object(value)
    tags, properties, sensitive = (fields.get(each) for each in ("tags", "properties", "sensitive"))
    found: dict[str, Any] = {}
    if tags is not None:
        if not isinstance(tags, dict) or not all(map(_is_texts, tags.values())):
            raise refusals.unprocessable("metadata.tags is no object of arrays of strings")
        found["tags"] = {key: sorted(set(each)) for key, each in sorted(tags.items())}
    if properties is not None:
        if not isinstance(properties, dict) or not _is_texts([*properties.values()]):
            raise refusals.unprocessable("metadata.properties is no object of strings")
        found["properties"] = dict(sorted(properties.items()))
    if sensitive is not None:
        if not _is_texts(sensitive):
            raise refusals.unprocessable("metadata.sensitive is no array of strings")
        found["sensitive"] = sorted(set(sensitive))
    _whole(found)
    return found


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _whole(value: Any) -> None:
    """Nothing in it that UTF-8 can't say."""
    match value:
        case str():
            _stored(value)
        case dict():
            for key, each in value.items():
                _stored(key)
                _whole(each)
        case list():
            for each in value:
                _whole(each)


def rule_set(value: Any) -> Settings | None:
    """Raises 42210."""
    if value is None:
        return None
    fields = _object(value)
    found: dict[str, Any] = {}
    for kind, modes in (
        ("migrationRules", MIGRATION_MODES),
        ("domainRules", DOMAIN_MODES),
        ("encodingRules", DOMAIN_MODES),
    ):
        rules = fields.get(kind)
        if rules is None:
            continue
        if not isinstance(rules, list):
            raise refusals.unprocessable(f"ruleSet.{kind} is no array")
        found[kind] = [_rule(each, modes) for each in rules]
        names = [each["name"] for each in found[kind]]
        if len({*names}) < len(names):
            raise refusals.invalid_rule_set("Found rule with duplicate name")
    if isinstance(fields.get("enableAt"), str):
        found["enableAt"] = fields["enableAt"]
    _whole(found)
    return found


def _rule(value: Any, modes: tuple[str, ...]) -> Settings:
    fields = _object(value)
    found: dict[str, Any] = {}
    for name in ("name", "doc", "kind", "mode", "type", "expr", "onSuccess", "onFailure"):
        text = _text(fields, name)
        if text is not None:
            found[name] = text
    if not RULE_NAME.fullmatch(found.get("name", "")):
        raise refusals.invalid_rule_set("Invalid rule name: a letter, and then letters, digits, _ and -, 64 at most")
    if "type" not in found:
        raise refusals.invalid_rule_set(f"Missing rule type: {found['name']}")
    if found.get("mode", modes[0]) not in modes:
        raise refusals.invalid_rule_set(f"Rule {found['name']} can only have the modes {', '.join(modes)}")
    if found.get("kind", "TRANSFORM") not in {"TRANSFORM", "CONDITION"}:
        raise refusals.unprocessable("kind of a rule is TRANSFORM or CONDITION")
    found.update(_tags_and_params(fields))
    found["disabled"] = fields.get("disabled") is True
    return found


def _tags_and_params(fields: Mapping[str, Any]) -> Settings:
    found: dict[str, Any] = {}
    tags, params = fields.get("tags"), fields.get("params")
    if tags is not None:
        if not _is_texts(tags):
            raise refusals.unprocessable("tags of a rule are an array of strings")
        found["tags"] = sorted(set(tags))
    if params is not None:
        if not isinstance(params, dict) or not _is_texts([*params.values()]):
            raise refusals.unprocessable("params of a rule are an object of strings")
        found["params"] = dict(sorted(params.items()))
    return found


@dataclass(frozen=True, slots=True)
class TagsBody:
    version: int = 0
    """Of what is to be registered: 0 for the next one."""
    taggings: tuple[Tagging, ...] = ()
    metadata: Settings | None = None
    rule_set: Settings | None = None
    merged: Settings | None = None
    removed: frozenset[str] | None = None
    """Names of rules."""


def tags_body(body: Any) -> TagsBody:
    """Raises 42210 for rules that are given twice."""
    fields = _object(body)
    _check_more(fields, (*TAGS_OF_VERSION, "metadata", "ruleSet", "rulesToMerge", "rulesToRemove"))
    removed = fields.get("rulesToRemove")
    if removed is not None and not _is_texts(removed):
        raise refusals.unprocessable("rulesToRemove is no array of strings")
    found = TagsBody(
        version=_number(fields, "newVersion", 0),
        taggings=_taggings(fields, *TAGS_OF_VERSION),
        metadata=metadata(fields.get("metadata")),
        rule_set=rule_set(fields.get("ruleSet")),
        merged=rule_set(fields.get("rulesToMerge")),
        removed=None if removed is None else frozenset(removed),
    )
    if found.rule_set is not None and (found.merged is not None or found.removed is not None):
        raise refusals.invalid_rule_set("ruleSet should be omitted if specifying rulesToMerge or rulesToRemove")
    return found


def _taggings(fields: Mapping[str, Any], to_add: str, to_remove: str) -> tuple[Tagging, ...]:
    """One for each record or field, in the order in which they are named."""
    paths: dict[tuple[str, bool], str] = {}
    tags: dict[tuple[str, tuple[str, bool]], list[str]] = {}
    for name in (to_add, to_remove):
        listed = fields.get(name)
        if listed is not None and not isinstance(listed, list):
            raise refusals.unprocessable(f"{name} is no array")
        for each in map(_object, listed or ()):
            path, is_record = _entity(_object(each.get("schemaEntity")))
            key = path.removeprefix("."), is_record
            paths.setdefault(key, path)
            tags.setdefault((name, key), []).extend(_entity_tags(each.get("tags")))
    if len(paths) > TAGGED_MAX:
        raise refusals.unprocessable(f"tags of {len(paths)} records and fields; at most {TAGGED_MAX} are allowed")
    return tuple(
        Tagging(path, key[1], *(tuple(tags.get((name, key), ())) for name in (to_add, to_remove)))
        for key, path in paths.items()
    )


def _entity(fields: Mapping[str, Any]) -> tuple[str, bool]:
    path, kind = _text(fields, "entityPath"), _text(fields, "entityType")
    if path is None or kind not in ENTITY_TYPES:
        raise refusals.unprocessable("schemaEntity needs an entityPath and the entityType sr_record or sr_field")
    return path, kind == "sr_record"


def _entity_tags(value: Any) -> list[str]:
    if not _is_texts(value):
        raise refusals.unprocessable("tags of a schemaEntity are an array of strings")
    return [*value]


def config_body(body: Any) -> Settings:
    """What is to be changed, by the names of requests; None takes a setting away. Raises 42203."""
    fields = _object(body)
    found: dict[str, Any] = {}
    for name in ("compatibility", "compatibilityLevel"):
        if name in fields:
            found["compatibilityLevel"] = _level(fields[name])
    for name in TEXTS:
        if name in fields:
            found[name] = _text(fields, name)
    for name in FLAGS:
        if name in fields:
            if fields[name] is not None and not isinstance(fields[name], bool):
                raise refusals.unprocessable(f"{name} is no boolean")
            found[name] = fields[name]
    found.update({name: metadata(fields[name]) for name in METADATA if name in fields})
    found.update({name: rule_set(fields[name]) for name in RULE_SETS if name in fields})
    if len(repr(found)) > MORE_BYTES_MAX:
        raise refusals.unprocessable(f"the configuration is larger than {MORE_BYTES_MAX} bytes")
    return found


def _level(value: Any) -> str | None:
    if value is None:
        return None
    level = value.upper() if isinstance(value, str) else ""
    if level not in LEVELS:
        raise refusals.invalid_level()
    return level


def mode_body(body: Any) -> str | None:
    """Raises 42204."""
    value = _object(body).get("mode")
    if value is None:
        return None
    mode = value.upper() if isinstance(value, str) else ""
    if mode not in MODES:
        raise refusals.invalid_mode()
    return mode
