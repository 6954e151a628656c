"""JSON Schemas' texts: what is one, what is stored, what references lead to, and what values fit."""

from __future__ import annotations

import json

import pytest

from moldau.schemas import json_schema
from moldau.schemas.model import InvalidSchema, InvalidValue, Json, ReferencedText, SchemaType

INVALID = [
    ("", "no JSON at line 1, column 1"),
    ("3", "a JSON Schema is an object or a boolean"),
    ("[]", "a JSON Schema is an object or a boolean"),
    ('{"type":"strin"}', 'at /type: "strin" is not valid'),
    ('{"properties":{"a":{"minLength":-1}}}', "at /properties/a/minLength: -1 is less than the minimum"),
    ('{"pattern":"("}', "at /pattern:"),
    ('{"required":"a"}', 'at /required: "a" is not of type "array"'),
    ('{"$schema":"http://example.com/mine"}', "is none of the drafts"),
    ('{"$schema":3}', "at /$schema: no text"),
    ('{"$ref":"#/definitions/a"}', "does not exist"),
    ('{"$ref":"other.json"}', 'the $ref "other.json" leads to none of the references'),
    ('{"$ref":"http://127.0.0.1:1/a.json"}', 'the $ref "http://127.0.0.1:1/a.json" leads to none'),
    ('{"$ref":"file:///etc/passwd"}', "leads to none of the references"),
    ('{"title":"\\ud800"}', "half a surrogate pair"),
    ('{"maximum":1e999}', "larger than any number"),
    (f'{{"maximum":{"9" * 2_000}}}', "a number of 2000 digits"),
    ('{"items":' * 300 + "{}" + "}" * 300, "nested deeper than 200 levels"),
]


@pytest.mark.parametrize(("text", "told"), INVALID)
def test_what_is_no_schema_is_told_with_its_place(text: str, told: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        json_schema.parse(text)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "stored", "normalized"),
    [
        (' { "type" : "string" } ', '{"type":"string"}', '{"type":"string"}'),
        ("true", "true", "true"),
        (
            '{"type":"object","properties":{"b":{},"a":{"maximum":1.50,"enum":[1e10,"é\\u00e9"]}}}',
            '{"type":"object","properties":{"b":{},"a":{"maximum":1.5,"enum":[1.0E10,"éé"]}}}',
            '{"properties":{"a":{"enum":[1.0E10,"éé"],"maximum":1.5},"b":{}},"type":"object"}',
        ),
    ],
)
def test_what_is_stored(text: str, stored: str, normalized: str) -> None:
    schema = json_schema.parse(text)
    assert (schema.canonical, schema.normalized, schema.formatted("resolved")) == (stored, normalized, stored)
    assert schema.type is SchemaType.JSON


def test_a_title_names_the_subject() -> None:
    assert json_schema.parse('{"title":"Order"}').record_name == "Order"
    assert json_schema.parse("{}").record_name is None
    assert json_schema.parse("true").record_name is None


ADDRESS = ReferencedText("address.json", '{"definitions":{"zip":{"type":"integer"}}}')
CUSTOMER = ReferencedText(
    "customer.json",
    '{"type":"object","required":["name"],"properties":{"zip":{"$ref":"address.json#/definitions/zip"}}}',
)


@pytest.mark.parametrize("own_id", ["", '"$id":"http://example.com/schemas/order.json",'])
def test_references_are_found_by_their_names_and_can_refer_on(own_id: str) -> None:
    order = json_schema.parse(f'{{{own_id}"properties":{{"c":{{"$ref":"customer.json"}}}}}}', [ADDRESS, CUSTOMER])
    assert order.decode(b'{"c":{"name":"a","zip":1}}') == {"c": {"name": "a", "zip": 1}}
    with pytest.raises(InvalidValue, match='at /c/zip: "x" is not of type "integer"'):
        order.encode({"c": {"name": "a", "zip": "x"}})


def test_a_reference_is_found_by_its_address() -> None:
    found = ReferencedText("http://example.com/a.json", '{"type":"null"}')
    assert json_schema.parse('{"$ref":"http://example.com/a.json"}', [found]).encode(None) == b"null"


def test_a_wrong_reference_is_named() -> None:
    with pytest.raises(InvalidSchema, match=r'reference "a\.json": no JSON'):
        json_schema.parse('{"$ref":"a.json"}', [ReferencedText("a.json", "{")])


@pytest.mark.parametrize(
    ("text", "value", "told"),
    [
        ('{"type":"integer"}', "x", 'at the root: "x" is not of type "integer"'),
        ('{"properties":{"a":{"type":"array","items":{"maximum":3}}}}', {"a": [1, 9]}, "at /a/1: 9 is greater than"),
        ('{"required":["a"]}', {}, '"a" is a required property'),
        ('{"additionalProperties":false}', {"b": 1}, "False schema does not allow 1"),
        ('{"$schema":"http://json-schema.org/draft-04/schema#","maximum":3,"exclusiveMaximum":true}', 3, "3"),
        ('{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[{"type":"null"}]}', [1], "at /0"),
        ('{"$schema":"https://json-schema.org/draft/2019-09/schema","dependentRequired":{"a":["b"]}}', {"a": 1}, '"b"'),
        ('{"$schema":"http://json-schema.org/draft-06/schema#","contains":{"const":1}}', [2], "at the root"),
        ("false", 1, "at the root"),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_its_place(text: str, value: Json, told: str) -> None:
    schema = json_schema.parse(text)
    with pytest.raises(InvalidValue) as caught:
        schema.encode(value)
    assert told in str(caught.value)
    with pytest.raises(InvalidValue):
        schema.decode(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("payload", "told"), [(b"{", "no JSON at line 1"), (b"\xff", "no UTF-8 at byte 0"), (b"[" * 300, "nested deeper")]
)
def test_a_payload_that_is_no_json_is_told(payload: bytes, told: str) -> None:
    with pytest.raises(InvalidValue, match=told):
        json_schema.parse("{}").decode(payload)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(?=.*b)(a+)+$", "(a*)*b", r"^(\w+\s?)*$"])
def test_patterns_of_exponential_time_take_little(pattern: str) -> None:
    schema = json_schema.parse(json.dumps({"type": "string", "pattern": pattern}))
    with pytest.raises(InvalidValue):
        schema.decode(json.dumps("a" * 50_000 + "!").encode())


@pytest.mark.parametrize(
    "text",
    [
        '{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["a"]},{"properties":{"a":{"$ref":"#"}},"required":["a"]}]}',
        '{"allOf":[{"$ref":"#"}]}',
        json.dumps(
            {"$ref": "#/definitions/d0", "definitions": {"d80": {"type": "null"}}
             | {f"d{at}": {"anyOf": [{"$ref": f"#/definitions/d{at + 1}"}] * 2} for at in range(80)}}
        ),
    ],
)  # fmt: skip
def test_values_that_would_be_judged_again_and_again_are_refused(text: str) -> None:
    value: Json = {}
    for _ in range(80):
        value = {"a": value}
    with pytest.raises(InvalidValue, match=r"too long|refers to itself"):
        json_schema.parse(text).encode(value)


def test_a_list_of_many_links_is_judged() -> None:
    value: Json = None
    for at in range(60):
        value = {"next": value, "at": at}
    text = '{"type":["object","null"],"properties":{"next":{"$ref":"#"},"at":{"type":"integer"}}}'
    schema = json_schema.parse(text)
    assert schema.decode(schema.encode(value)) == value


def test_definitions_are_found_by_the_word_of_later_drafts() -> None:
    text = '{"properties":{"a":{"$ref":"#/$defs/x"}},"definitions":{"x":{"type":"integer"}}}'
    schema = json_schema.parse(text)
    assert schema.canonical == text
    with pytest.raises(InvalidValue, match="at /a"):
        schema.encode({"a": "b"})
