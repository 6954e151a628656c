"""Tags of objects and properties in JSON Schema: where a path leads, by Confluent's numbers of schemas in lists."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.schemas.json_schema import tagged
from moldau.schemas.model import InvalidSchema
from moldau.schemas.tagging import Tagging

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "plain": {"type": "string"},
        "with.dots": {"type": "string"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "number"}}}},
        "both": {"allOf": [{"type": "string"}, {"type": "object", "properties": {"a": {"type": "boolean"}}}]},
        "never": {"not": {"type": "object", "properties": {"a": {"type": "boolean"}}}},
        "maybe": {"type": ["null", "object"], "properties": {"a": {}}},
        "asked": {"properties": {"a": {}}, "if": {"properties": {"b": {}}}, "then": {"properties": {"b": {}}}},
        "pair": {"type": "array", "items": [{}, {}]},
        "any": True,
        "titled": {
            "oneOf": [
                {"type": "object", "title": "Z", "properties": {"a": {}}},
                {"type": "object", "properties": {"b": {}, "c": {}}},
                {"type": "object", "properties": {"a": {}}},
                {"type": "object", "title": "A", "properties": {"a": {}}},
                {"type": "object", "properties": {"b": {}}},
                {"const": 1},
                {"enum": [2]},
                {"not": {"type": "null"}},
                {"anyOf": [{"type": "string"}, {"type": "null"}]},
                {"type": "array", "items": {"type": "object"}},
                {"$ref": "#/definitions/In"},
                False,
                {},
                {"if": {"type": "null"}, "then": {}, "properties": {"d": {}}},
                {"type": "object", "default": {}, "properties": {"a": {}}},
            ]
        },
    },
    "definitions": {"In": {"type": "object", "properties": {"x": {}}}, "a.b": {"type": "string"}},
    "$defs": {"Other": {"type": "object"}},
}
TITLED = "/properties/titled/oneOf"


@pytest.mark.parametrize(
    ("path", "is_record", "place"),
    [
        ("object", True, ""),
        ("object.plain", False, "/properties/plain"),
        ("object.plain", True, "/properties/plain"),
        ("object.with.dots", False, "/properties/with.dots"),
        ("object.list.array.object", True, "/properties/list/items"),
        ("object.list.array.object.id", False, "/properties/list/items/properties/id"),
        ("object.both.allof.0.object", True, "/properties/both/allOf/1"),
        ("object.both.allof.0.object.a", False, "/properties/both/allOf/1/properties/a"),
        ("object.never.not.object.a", False, "/properties/never/not/properties/a"),
        ("object.maybe.anyof.1.object.a", False, "/properties/maybe/properties/a"),
        ("object.maybe.allof.0.object", True, "/properties/maybe"),
        ("object.asked.allof.1.object.a", False, "/properties/asked/properties/a"),
        ("object.asked.allof.0.conditional.then.object.b", False, "/properties/asked/then/properties/b"),
        ("object.asked.allof.0.conditional.if.object", True, "/properties/asked/if"),
        ("object.definitions.In.object.x", False, "/definitions/In/properties/x"),
        ("object.definitions.a.b", False, "/definitions/a.b"),
        ("object.$defs.Other.object", True, "/$defs/Other"),
        ("object.titled.oneof.0.array.object", True, TITLED + "/9/items"),
        ("object.titled.oneof.6.not.object", True, TITLED + "/7/not"),
        ("object.titled.oneof.7.object.a", False, TITLED + "/2/properties/a"),
        ("object.titled.oneof.8.object.a", False, TITLED + "/14/properties/a"),
        ("object.titled.oneof.9.object.b", False, TITLED + "/4/properties/b"),
        ("object.titled.oneof.10.object.d", False, TITLED + "/13/properties/d"),
        ("object.titled.oneof.11.object", True, TITLED + "/1"),
        ("object.titled.oneof.12.object", True, TITLED + "/3"),
        ("object.titled.oneof.13.object", True, TITLED + "/0"),
    ],
)
def test_a_path_leads_to_an_object_or_a_property(path: str, is_record: bool, place: str) -> None:
    expected = json.loads(json.dumps(SCHEMA))
    node = expected
    for step in place.split("/")[1:]:
        node = node[int(step)] if isinstance(node, list) else node[step]
    node["confluent:tags"] = ["PII"]
    found = tagged(json.dumps(SCHEMA), (), [Tagging(path, is_record, ("PII",))])
    assert json.loads(found) == expected
    assert json.loads(tagged(found, (), [Tagging(path, is_record, (), ("PII",))])) == SCHEMA


@pytest.mark.parametrize(
    ("path", "is_record"),
    [
        ("", True),
        ("plain", False),
        ("object", False),
        ("object.none", False),
        ("object.any", False),
        ("object.definitions", False),
        ("object.plain.object.a", False),
        ("object.pair.array.object", True),
        ("object.both.allof.2.object", True),
        ("object.both.allof.first.object", True),
        ("object.both.allof", True),
        ("object.both.oneof.0.object", True),
        ("object.titled.oneof.5.object", True),  # false
        ("object.asked.allof.0.conditional.properties.object", True),
        ("array.object", True),
        (".object", True),
    ],
)
def test_a_path_that_leads_nowhere_is_told(path: str, is_record: bool) -> None:
    with pytest.raises(InvalidSchema, match="No matching path"):
        tagged(json.dumps(SCHEMA), (), [Tagging(path, is_record, ("PII",))])


def test_the_rest_of_the_text_stays() -> None:
    text = '{"maximum":1.0E10,"type":"object","confluent:tags":["A"],"properties":{"é":{}}}'
    taggings = [Tagging("object", True, ("B",)), Tagging("object.é", False, ("C",))]
    assert tagged(text, (), taggings) == (
        '{"maximum":1.0E10,"type":"object","confluent:tags":["A","B"],"properties":{"é":{"confluent:tags":["C"]}}}'
    )
