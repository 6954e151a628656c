"""Tags inside of schemas over HTTP: added, read back and removed, each time as a version of its own."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.registry.bodies import TAGGED_MAX
from tests.registry.running import RunningRegistry

pytestmark = pytest.mark.xdist_group("registry")

RECORD, FIELD = "sr_record", "sr_field"
TEXTS = {
    "AVRO": '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"card","type":"string"}]}',
    "JSON": '{"type":"object","properties":{"card":{"type":"string"}}}',
    "PROTOBUF": 'syntax = "proto3";\npackage shop;\n\nmessage Order {\n  string card = 1;\n}\n',
}
PATHS = {
    "AVRO": ("shop.Order", "shop.Order.card"),
    "JSON": ("object", "object.card"),
    "PROTOBUF": ("Order", "Order.card"),
}
TAGGED = {
    "AVRO": '{"type":"record","name":"Order","namespace":"shop",'
    '"fields":[{"name":"card","type":"string","confluent:tags":["PII","CARD"]}],"confluent:tags":["SHOP"]}',
    "JSON": '{"type":"object","properties":{"card":{"type":"string","confluent:tags":["PII","CARD"]}},'
    '"confluent:tags":["SHOP"]}',
    "PROTOBUF": """syntax = "proto3";
package shop;

import "confluent/meta.proto";

message Order {
  option (confluent.message_meta) = {
    tags: [
      "SHOP"
    ]
  };

  string card = 1 [(confluent.field_meta) = {
    tags: [
      "PII",
      "CARD"
    ]
  }];
}
""",
}


def tags(path: str, kind: str, *names: str) -> dict[str, Any]:
    return {"schemaEntity": {"entityPath": path, "entityType": kind}, "tags": [*names]}


def registered(registry: RunningRegistry, subject: str, kind: str = "AVRO") -> str:
    answer = registry.ask("POST", f"/subjects/{subject}/versions", {"schema": TEXTS[kind], "schemaType": kind})
    assert answer[0] == 200, answer
    return f"/subjects/{subject}/versions"


@pytest.mark.parametrize("kind", TEXTS)
def test_tags_are_added_read_and_removed(registry: RunningRegistry, subject: str, kind: str) -> None:
    versions = registered(registry, subject, kind)
    record, field = PATHS[kind]
    added = {
        "tagsToAdd": [tags(field, FIELD, "PII", "OLD"), tags(record, RECORD, "SHOP"), tags(field, FIELD, "CARD")],
        "tagsToRemove": [tags(field, FIELD, "OLD", "NONE")],
        "metadata": {"properties": {"owner": "billing"}},
    }
    status, answer = registry.ask("POST", f"{versions}/latest/tags", added)
    assert (status, answer["version"]) == (200, 2)
    found = registry.ask("GET", f"{versions}/latest")[1]
    assert found["schema"] == TAGGED[kind]
    assert found["metadata"] == {"properties": {"confluent:version": "2", "owner": "billing"}}
    assert registry.ask("GET", f"/schemas/ids/{found['id']}")[1]["schema"] == TAGGED[kind]
    assert registry.ask("POST", f"{versions}/latest/tags", {**added, "newVersion": 4})[1]["error_code"] == 42_201
    assert registry.ask("POST", f"{versions}/latest/tags", added)[1]["version"] == 2, "it is there"
    removed = {"tagsToRemove": [tags(field, FIELD, "PII", "CARD"), tags(record, RECORD, "SHOP")], "newVersion": 3}
    answer = registry.ask("POST", f"{versions}/2/tags", removed)[1]
    assert (answer["version"], answer["metadata"]["properties"]) == (3, {"confluent:version": "3", "owner": "billing"})
    assert "SHOP" not in answer["schema"]
    assert "PII" not in answer["schema"]
    assert registry.ask("GET", versions)[1] == [1, 2, 3]


@pytest.mark.parametrize("kind", TEXTS)
def test_a_schema_is_registered_with_tags(registry: RunningRegistry, subject: str, kind: str) -> None:
    versions = registered(registry, subject, kind)
    record, field = PATHS[kind]
    body = {"schema": TEXTS[kind], "schemaType": kind}
    added = {**body, "schemaTagsToAdd": [tags(field, FIELD, "PII", "CARD"), tags(record, RECORD, "SHOP")]}
    assert registry.ask("POST", f"/subjects/{subject}", added)[1]["error_code"] == 40_403
    asked = f"/compatibility{versions}/latest"
    assert registry.ask("POST", asked, added) == (200, {"is_compatible": True})
    answer = registry.ask("POST", versions, added)[1]
    assert (answer["version"], answer["schema"]) == (2, TAGGED[kind])
    assert answer["metadata"] == {"properties": {"confluent:version": "2"}}
    assert registry.ask("POST", f"/subjects/{subject}", added)[1]["version"] == 2
    removed = {**body, "schema": TAGGED[kind], "schemaTagsToRemove": [tags(field, FIELD, "PII")], "version": 3}
    answer = registry.ask("POST", versions, removed)[1]
    assert (answer["version"], "CARD" in answer["schema"], "PII" in answer["schema"]) == (3, True, False)
    wrong = {**body, "schemaTagsToAdd": [tags("none", RECORD, "A")]}
    for path in (versions, f"/subjects/{subject}", asked):
        assert registry.ask("POST", path, wrong)[1]["error_code"] == 42_201


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"tagsToAdd": [tags("does.not.exist", FIELD, "A")]}, 42_201),
        ({"tagsToRemove": [tags("does.not.exist", RECORD, "A")]}, 42_201),
        ({"tagsToAdd": [tags("", RECORD, "A")]}, 42_201),
        ({"tagsToAdd": [tags("shop.Order", RECORD, "A")], "newVersion": 1}, 42_201),
        ({"tagsToAdd": [tags("shop.Order", RECORD, "A")], "newVersion": 3}, 42_201),
        ({"tagsToAdd": [tags("shop.Order", RECORD, "x" * 200_000)]}, 42_209),
        ({"ruleSet": {"domainRules": []}, "rulesToRemove": ["a"]}, 42_210),
        ({"ruleSet": {"domainRules": []}, "rulesToMerge": {"domainRules": []}}, 42_210),
        ({"tagsToAdd": [tags("shop.Order", "sr_table", "A")]}, 422),
        ({"tagsToAdd": [tags(f"f{number}", FIELD, "A") for number in range(TAGGED_MAX + 1)]}, 422),
        ({"tagsToAdd": [{"schemaEntity": {"entityType": FIELD}, "tags": ["A"]}]}, 422),
        ({"tagsToAdd": [{"schemaEntity": {"entityPath": "shop.Order", "entityType": FIELD}}]}, 422),
        ({"tagsToAdd": [{"tags": ["A"]}]}, 422),
        ({"tagsToAdd": "A"}, 422),
        ({"tagsToAdd": ["A"]}, 422),
        ({"rulesToRemove": [1]}, 422),
        ([], 422),
    ],
)
def test_what_is_refused(registry: RunningRegistry, subject: str, body: Any, code: int) -> None:
    versions = registered(registry, subject)
    status, answer = registry.ask("POST", f"{versions}/1/tags", body)
    assert (status, answer["error_code"]) == (422, code), answer
    assert registry.ask("GET", versions)[1] == [1]


def test_versions_that_are_not_there(registry: RunningRegistry, subject: str) -> None:
    body = {"tagsToAdd": [tags("shop.Order", RECORD, "A")]}
    assert registry.ask("POST", f"/subjects/{subject}/versions/1/tags", body)[1]["error_code"] == 40_401
    versions = registered(registry, subject)
    assert registry.ask("POST", f"{versions}/2/tags", body)[1]["error_code"] == 40_402
    assert registry.ask("POST", f"{versions}/0/tags", body)[1]["error_code"] == 42_202


def test_a_schema_that_its_tags_make_too_large(registry: RunningRegistry, subject: str) -> None:
    text = f'{{"type":"record","name":"R","doc":"{"x" * 990_000}","fields":[]}}'
    assert registry.ask("POST", f"/subjects/{subject}/versions", {"schema": text})[0] == 200
    body = {"tagsToAdd": [tags("R", RECORD, "y" * 20_000)]}
    assert registry.ask("POST", f"/subjects/{subject}/versions/1/tags", body)[1]["error_code"] == 42_209


def test_rules_are_merged_into_those_of_the_version_before(registry: RunningRegistry, subject: str) -> None:
    def rules(*names: str) -> dict[str, Any]:
        return {"domainRules": [{"name": name, "type": "CEL", "kind": "CONDITION"} for name in names]}

    versions = registered(registry, subject)
    for body, names in (
        ({"ruleSet": rules("a", "b")}, ["a", "b"]),
        ({"rulesToMerge": rules("c", "a"), "rulesToRemove": ["b"]}, ["c", "a"]),
        ({"tagsToAdd": [tags("Order", RECORD, "A")]}, ["c", "a"]),
    ):
        answer = registry.ask("POST", f"{versions}/1/tags", body)[1]
        assert [each["name"] for each in answer["ruleSet"]["domainRules"]] == names
    assert registry.ask("GET", versions)[1] == [1, 2, 3, 4]
