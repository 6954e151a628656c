"""The message classes against their definition: the JSON files in Apache Kafka's own jar."""

from __future__ import annotations

import functools
import json
import re
import zipfile
from typing import Any

import pytest
from msgspec import Struct

from moldau.core.ids import ZERO_UUID
from moldau.wire import messages
from moldau.wire.schema import NEVER, NEWEST, Field, Kind, Message, Versions, fields_of
from tests import apache_kafka
from tests.wire.message_values import CLASSES

pytestmark = pytest.mark.skipif(not apache_kafka.available(), reason="needs Java, and Maven for the jars")

KINDS = {kind.name.lower(): kind for kind in Kind}
NO_VERSION = Versions(1, 0)
# Kafka's request and response use one name for two structures, and one module has place for one of them.
NAMES_IN_KAFKA = {
    "QuorumTopicQuery": "TopicData",
    "QuorumPartitionQuery": "PartitionData",
    "IsrOfTopic": "TopicData",
    "IsrOfPartition": "PartitionData",
    "AssignedDirectory": "DirectoryData",
    "AssignedTopic": "TopicData",
    "AssignedPartition": "PartitionData",
    "AlteredEntry": "EntryData",
}


@functools.cache
def definitions() -> dict[str, dict[str, Any]]:
    """Kafka's message definitions by name; their comments aren't JSON and are cut off."""
    found = {}
    with zipfile.ZipFile(apache_kafka.clients_jar()) as jar:
        for name in jar.namelist():
            if name.startswith("common/message/") and name.endswith(".json"):
                text = re.sub(r'(?m)^\s*//.*$|\s//[^"\n]*$', "", jar.read(name).decode())
                definition = json.loads(text)
                common = {each["name"]: each["fields"] for each in definition.get("commonStructs", [])}
                definition["fields"] = inlined(definition.get("fields", []), common)
                found[definition["name"]] = definition
    return found


def inlined(fields: list[dict[str, Any]], common: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The fields with those of a shared structure wherever one is named, as if it had been written there."""
    found = []
    for each in fields:
        nested = each.get("fields") or common.get(each["type"].removeprefix("[]"))
        found.append({**each, "fields": inlined(nested, common)} if nested else each)
    return found


def versions_of(text: str) -> Versions:
    if text == "none":
        return NO_VERSION
    oldest, _, newest = text.partition("-")
    if text.endswith("+"):
        return Versions(int(text[:-1]), NEWEST)
    return Versions(int(oldest), int(newest or oldest))


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def default_of(definition: dict[str, Any]) -> Any:
    text, type_name = definition.get("default"), definition["type"]
    if text == "null" or (text is None and type_name == "records"):
        return None
    if text is None:
        empty: dict[str, Any] = {"bool": False, "string": "", "uuid": ZERO_UUID, "bytes": b"", "float64": 0.0}
        return [] if type_name.startswith("[]") else empty.get(type_name, 0)
    if type_name == "bool":
        return str(text).lower() == "true"
    return text if type_name == "string" else int(str(text), 0)


def expected_fields(definitions: list[dict[str, Any]], version: int) -> dict[str, tuple[Any, ...]]:
    """What each field must be at a version: for one that is absent, only what decides whether it may be set."""
    expected = {}
    for each in definitions:
        present = version in versions_of(each["versions"])
        layout: tuple[Any, ...] = ()
        if present:
            nullable = version in versions_of(each.get("nullableVersions", "none"))
            tag = each.get("tag") if version in versions_of(each.get("taggedVersions", "none")) else None
            layout = (each["type"], nullable, tag)
        is_struct = "fields" in each and not each["type"].startswith("[]")
        default = default_of(each) if not is_struct or "default" in each else "a struct of defaults"
        expected[snake(each["name"])] = (layout, default, present or each.get("ignorable", False))
    return expected


def declared_fields(cls: type[Struct], version: int) -> dict[str, tuple[Any, ...]]:
    declared = {}
    for field in fields_of(cls):
        present = version in field.versions
        layout = (type_name(field), field.is_nullable_in(version), field.tag) if present else ()
        default: Any = field.default()
        if isinstance(default, Struct):
            assert default == type(default)()
            default = "a struct of defaults"
        declared[field.name] = (layout, default, present or field.is_ignorable)
    return declared


def type_name(field: Field) -> str:
    name = field.type.name.lower() if isinstance(field.type, Kind) else field.type.__name__
    name = NAMES_IN_KAFKA.get(name, name)
    return f"[]{name}" if field.is_array else name


def check(cls: type[Struct], fields: list[dict[str, Any]], version: int) -> None:
    declared, expected = declared_fields(cls, version), expected_fields(fields, version)
    assert declared == expected, f"{cls.__name__} at version {version}"
    assert list(declared) == list(expected), f"{cls.__name__}: the order on the wire"
    nested = {field.name: field.type for field in fields_of(cls) if not isinstance(field.type, Kind)}
    for each in fields:
        if "fields" in each and version in versions_of(each["versions"]):
            inner = nested[snake(each["name"])]
            assert not isinstance(inner, Kind)
            check(inner, each["fields"], version)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_class_declares_what_kafka_declares(cls: type[Message]) -> None:
    definition = definitions()[cls.__name__]
    assert definition["apiKey"] == cls.API_KEY
    assert versions_of(definition["validVersions"]) == Versions(*cls.VERSIONS)
    flexible = versions_of(definition["flexibleVersions"])
    assert (NEVER if flexible == NO_VERSION else flexible.oldest) == cls.FLEXIBLE_FROM
    assert issubclass(cls, Struct)
    for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1):
        check(cls, definition["fields"], version)


def test_every_message_is_exported_and_registered() -> None:
    assert {cls.__name__ for cls in CLASSES} == set(messages.__all__)
