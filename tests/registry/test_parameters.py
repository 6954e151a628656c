"""Every parameter, level and mode over HTTP, as Confluent's documentation has them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from tests.registry.running import RunningRegistry

pytestmark = pytest.mark.xdist_group("registry")

EMPTY, A, B, AB = (
    {"schema": json.dumps({"type": "record", "name": "R", "fields": fields})}
    for fields in (
        [],
        [{"name": "a", "type": "int"}],
        [{"name": "b", "type": "int", "default": 0}],
        [{"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 0}],
    )
)
RULES = {"domainRules": [{"name": "checked", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}]}


def register(registry: RunningRegistry, subject: str, body: object, query: str = "") -> tuple[int, Any]:
    return registry.ask("POST", f"/subjects/{subject}/versions{query}", body)


def test_schemas_are_listed_in_pages(registry: RunningRegistry, subject: str) -> None:
    for body in (EMPTY, B):
        assert register(registry, f"{subject}-1", body)[0] == 200
    register(registry, f"{subject}-2", {**EMPTY, "ruleSet": RULES})

    def listed(query: str = "") -> list[tuple[str, int]]:
        found = registry.ask("GET", f"/schemas?subjectPrefix={subject}{query}")[1]
        return [(each["subject"].removeprefix(subject), each["version"]) for each in found]

    assert listed() == [("-1", 1), ("-1", 2), ("-2", 1)]
    assert listed("&latestOnly=true") == [("-1", 2), ("-2", 1)]
    assert listed("&offset=1&limit=1") == [("-1", 2)]
    assert listed("&offset=7") == []
    assert listed("&ruleType=CEL") == [("-2", 1)]
    registry.ask("DELETE", f"/subjects/{subject}-1/versions/1")
    assert listed() == [("-1", 2), ("-2", 1)]
    assert listed("&deleted=true") == [("-1", 1), ("-1", 2), ("-2", 1)]
    assert registry.ask("GET", f"/subjects?subjectPrefix={subject}&offset=1&limit=5") == (200, [f"{subject}-2"])
    assert registry.ask("GET", f"/subjects/{subject}-1/versions?deletedOnly=true") == (200, [1])
    assert registry.ask("GET", f"/subjects/{subject}-1/versions?deletedAsNegative=true") == (200, [-1, 2])


def test_the_latest_version_has_two_names(registry: RunningRegistry, subject: str) -> None:
    for body in (EMPTY, B):
        register(registry, subject, body)
    answers = [registry.ask("GET", f"/subjects/{subject}/versions/{each}") for each in ("latest", "-1", "2")]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][1]["version"] == 2
    assert registry.ask("GET", f"/subjects/{subject}/versions/latest/schema")[1] == json.loads(B["schema"])
    assert registry.ask("POST", f"/compatibility/subjects/{subject}/versions/-1", EMPTY)[1]["is_compatible"]
    assert registry.ask("DELETE", f"/subjects/{subject}/versions/-1") == (200, 2)


def test_an_id_with_the_largest_one(registry: RunningRegistry, subject: str) -> None:
    given = register(registry, subject, {"schema": f'{{"type":"enum","name":"E{subject[-8:]}","symbols":[]}}'})[1]["id"]
    found = registry.ask("GET", f"/schemas/ids/{given}?fetchMaxId=true&subject={subject}")[1]
    assert found["maxId"] >= given
    assert "maxId" not in registry.ask("GET", f"/schemas/ids/{given}")[1]
    assert registry.ask("GET", f"/schemas/ids/{given}/versions") == (200, [{"subject": subject, "version": 1}])
    assert registry.ask("GET", f"/schemas/ids/{given}/subjects?subject={subject}-x") == (200, [])


def test_forms_of_a_text(registry: RunningRegistry, subject: str) -> None:
    money = '{"type":"record","name":"Money","fields":[{"name":"cents","type":"long"}]}'
    register(registry, f"{subject}-money", {"schema": money})
    order = {"schema": '{"type":"record","name":"Order","fields":[{"name":"sum","type":"Money"}]}'}
    refers = {"references": [{"name": "Money", "subject": f"{subject}-money", "version": -1}]}
    given = register(registry, subject, {**order, **refers})[1]["id"]
    found = registry.ask("GET", f"/schemas/ids/{given}")[1]
    assert found["references"] == [{"name": "Money", "subject": f"{subject}-money", "version": 1}], (
        "no longer the latest"
    )
    resolved = json.loads(registry.ask("GET", f"/schemas/ids/{given}?format=resolved")[1]["schema"])
    assert resolved["fields"][0]["type"] == json.loads(money)
    text = 'syntax = "proto3"; package p; message M { int64 a = 1; }'
    given = register(registry, f"{subject}-proto", {"schema": text, "schemaType": "PROTOBUF"})[1]["id"]
    serialized = registry.ask("GET", f"/schemas/ids/{given}?format=serialized")[1]["schema"]
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(serialized))
    assert (file.package, [each.name for each in file.message_type]) == ("p", ["M"])
    version = registry.ask("GET", f"/subjects/{subject}-proto/versions/1?format=serialized")[1]["schema"]
    assert version == serialized


def test_what_is_normalized_is_one_schema(registry: RunningRegistry, subject: str) -> None:
    texts = ('{"type":"object","title":"T"}', '{"title":"T","type":"object"}')
    plain = [register(registry, f"{subject}-1", {"schema": each, "schemaType": "JSON"})[1]["version"] for each in texts]
    same = [
        register(registry, f"{subject}-2", {"schema": each, "schemaType": "JSON"}, "?normalize=true")[1]["version"]
        for each in texts
    ]
    assert (plain, same) == ([1, 2], [1, 1])
    registry.ask("PUT", f"/config/{subject}-3", {"normalize": True})
    by_configuration = [
        register(registry, f"{subject}-3", {"schema": each, "schemaType": "JSON"})[1]["version"] for each in texts
    ]
    assert by_configuration == [1, 1]
    body = {"schema": texts[0], "schemaType": "JSON"}
    assert registry.ask("POST", f"/subjects/{subject}-2?normalize=true", body)[1]["version"] == 1


def test_what_no_subject_says_counts_for_all(registry: RunningRegistry, subject: str) -> None:
    for path, codes, own in (("config", 40_408, "compatibilityLevel"), ("mode", 40_409, "mode")):
        assert registry.ask("GET", f"/{path}/{subject}")[1]["error_code"] == codes
        everybodys = registry.ask("GET", f"/{path}")[1][own]
        assert registry.ask("GET", f"/{path}/{subject}?defaultToGlobal=true")[1][own] == everybodys


@pytest.mark.parametrize(
    ("level", "takes_a", "takes_b", "takes_empty"),
    [  # behind EMPTY and AB: a is required and may vanish, b has a default
        ("NONE", True, True, True),
        ("BACKWARD", True, True, True),
        ("BACKWARD_TRANSITIVE", False, True, True),
        ("FORWARD", True, False, False),
        ("FORWARD_TRANSITIVE", True, False, False),
        ("FULL", True, False, False),
        ("FULL_TRANSITIVE", False, False, False),
    ],
)
def test_levels_look_at_the_last_version_or_at_all(
    registry: RunningRegistry, subject: str, level: str, *, takes_a: bool, takes_b: bool, takes_empty: bool
) -> None:
    registry.ask("PUT", f"/config/{subject}", {"compatibility": "NONE"})
    for body in (EMPTY, AB):
        register(registry, subject, body)
    assert registry.ask("PUT", f"/config/{subject}", {"compatibility": level}) == (200, {"compatibility": level})
    asked = [
        registry.ask("POST", f"/compatibility/subjects/{subject}/versions", each)[1]["is_compatible"]
        for each in (A, B, EMPTY)
    ]
    assert asked == [takes_a, takes_b, takes_empty]
    status, answer = register(registry, subject, A)
    assert (status, answer.get("error_code")) == ((200, None) if takes_a else (409, 40_901))
    if not takes_a:
        assert register(registry, subject, A, "?force=true")[1]["version"] == 3, "who forces is not checked"


FIELDS = {
    "AVRO": '{"type":"record","name":"R","fields":[{"name":"kept","type":"int"},{"name":"old","type":"int"}]}',
    "JSON": '{"type":"object","properties":{"kept":{"type":"integer"},"old":{"type":"integer"}}}',
    "PROTOBUF": 'syntax = "proto3"; message R { optional int32 kept = 1; int32 old = 2; oneof one { int32 two = 3; } }',
}


@pytest.mark.parametrize("kind", FIELDS)
@pytest.mark.parametrize("level", ["NONE", "FULL"])
def test_reserved_fields_are_kept_free_where_fields_are_validated(
    registry: RunningRegistry, subject: str, kind: str, level: str
) -> None:
    def body(reserved: str) -> dict[str, Any]:
        properties = {"confluent:reserved": reserved, "owner": "billing"}
        return {"schema": FIELDS[kind], "schemaType": kind, "metadata": {"properties": properties}}

    registry.ask("PUT", f"/config/{subject}", {"compatibility": level})
    assert register(registry, subject, body("old, two,gone"))[0] == 200, "nobody asked for it"
    registry.ask("PUT", f"/config/{subject}", {"compatibility": level, "validateFields": True})
    told = [
        "The new schema has reserved field gone removed from its metadata "
        "which is present in the old schema's metadata.",
        "The new schema has field that conflicts with the reserved field old.",
        f"{{validateFields: 'true', compatibility: '{level}'}}",
    ]
    asked = f"/compatibility/subjects/{subject}/versions/latest?verbose=true"
    assert registry.ask("POST", asked, body("two, old"))[1] == {"is_compatible": False, "messages": told}
    status, answer = register(registry, subject, body("two, old"))
    assert (status, answer["error_code"]) == (409, 40_901)
    assert ", ".join(told) in answer["message"]
    free = {**body("old,two,gone"), "schema": FIELDS[kind].replace("old", "young")}
    found = registry.ask("POST", asked, free)[1]["messages"]
    assert not [each for each in found if "reserved" in each]


@pytest.mark.parametrize(
    ("mode", "plain", "with_id"),
    [
        ("READWRITE", None, 42_205),
        ("READONLY", 42_205, 42_205),
        ("READONLY_OVERRIDE", 42_205, 42_205),
        ("IMPORT", 42_205, None),
        ("FORWARD", 42_205, None),
    ],
)
def test_modes_say_who_writes(
    registry: RunningRegistry, subject: str, mode: str, plain: int | None, with_id: int | None
) -> None:
    assert registry.ask("PUT", f"/mode/{subject}", {"mode": mode}) == (200, {"mode": mode})
    text = {"schema": f'{{"type":"fixed","name":"F{subject[-8:]}","size":1}}'}
    assert register(registry, subject, text)[1].get("error_code") == plain
    own = {"schema": f'{{"type":"fixed","name":"G{subject[-8:]}","size":1}}', "id": 1_200_000 + int(subject[-5:], 16)}
    assert register(registry, subject, own)[1].get("error_code") == with_id
    assert registry.ask("DELETE", f"/mode/{subject}") == (200, {"mode": mode})
    assert registry.ask("GET", f"/mode/{subject}")[1]["error_code"] == 40_409


def test_an_import_needs_empty_ground_or_force(registry: RunningRegistry, subject: str) -> None:
    register(registry, subject, EMPTY)
    assert registry.ask("PUT", f"/mode/{subject}", {"mode": "IMPORT"})[1]["error_code"] == 42_205
    assert registry.ask("PUT", f"/mode/{subject}?force=true", {"mode": "IMPORT"})[0] == 200


def test_metadata_and_rules_are_kept(registry: RunningRegistry, subject: str) -> None:
    metadata = {"properties": {"owner": "billing"}, "tags": {"R": ["PII"]}, "sensitive": ["x"]}
    more = {"metadata": metadata, "ruleSet": RULES}
    status, given = register(registry, subject, {**EMPTY, **more})
    assert status == 200
    found = registry.ask("GET", f"/subjects/{subject}/versions/1")[1]
    assert found["metadata"] == metadata
    assert found["ruleSet"]["domainRules"][0]["expr"] == "true"
    assert registry.ask("GET", f"/schemas/guids/{found['guid']}")[1]["metadata"] == metadata
    assert {"context": ".", "id": given["id"]} in registry.ask("GET", f"/schemas/guids/{found['guid']}/ids")[1]
    wrong = {**EMPTY, "ruleSet": {"domainRules": [{"name": "1x", "type": "CEL"}]}}
    assert register(registry, subject, wrong)[1]["error_code"] == 42_210


def test_what_is_told_of_itself(registry: RunningRegistry) -> None:
    assert registry.ask("GET", "/v1/metadata/version")[1].keys() >= {"version", "commitId"}
    scope = registry.ask("GET", "/v1/metadata/id")[1]["scope"]
    assert scope["clusters"].keys() == {"kafka-cluster", "schema-registry-cluster"}
    assert registry.ask("GET", "/v1/metadata/deployment")[0] == 200
    assert registry.ask("GET", "/schemas/types") == (200, ["JSON", "PROTOBUF", "AVRO"])
    assert registry.ask("GET", "/") == registry.ask("POST", "/", {}) == (200, {})
