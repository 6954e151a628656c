"""JSON Schemas of registries as types of columns."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from moldau.spark.formats import FormatError
from moldau.spark.formats.json.derived import json_schema_of
from moldau.spark.formats.json.encoder import JsonEncoder
from moldau.spark.formats.json.schema_types import arrow_type_of_schema
from moldau.spark.formats.type_names import spark_name


def type_of(schema: Any, **references: Any) -> str:
    texts = {name: json.dumps(each) for name, each in references.items()}
    return spark_name(arrow_type_of_schema(json.dumps(schema), texts, place="here"))


@pytest.mark.parametrize(
    ("member", "expected"),
    [
        ({"type": "integer"}, "bigint"),
        ({"type": "integer", "connect.type": "int16"}, "smallint"),
        ({"type": ["null", "number"]}, "double"),
        ({"oneOf": [{"type": "null"}, {"type": "string", "format": "date"}]}, "date"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, "string"),
        ({"enum": ["a", "b"]}, "string"),
        ({}, "string"),
        (True, "string"),
        ({"type": "array", "items": {"type": "boolean"}}, "array<boolean>"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "map<string,bigint>"),
        ({"type": "object"}, "string"),
        ({"$ref": "#/definitions/A"}, "struct<a:bigint>"),
        ({"anyOf": [{"type": "null"}, {"$ref": "#/definitions/A"}]}, "struct<a:bigint>"),
        (
            {"allOf": [{"$ref": "#/definitions/A"}, {"properties": {"b": {"type": "string"}}}]},
            "struct<a:bigint,b:string>",
        ),
        ({"$ref": "#/definitions/Tree"}, "struct<left:string>"),
        ({"$ref": "other.json#/definitions/B"}, "struct<b:boolean>"),
    ],
)
def test_a_member_has_a_type(member: Any, expected: str) -> None:
    definitions = {
        "A": {"type": "object", "properties": {"a": {"type": "integer"}}},
        "Tree": {"type": "object", "properties": {"left": {"$ref": "#/definitions/Tree"}}},
    }
    other = {"definitions": {"B": {"type": "object", "properties": {"b": {"type": "boolean"}}}}}
    schema = {"type": "object", "properties": {"x": member}, "definitions": definitions}
    assert type_of(schema, **{"other.json": other}) == f"struct<x:{expected}>"


def test_a_reference_to_nowhere_is_told() -> None:
    with pytest.raises(FormatError, match=r"here: gone\.json refers to a schema that is not among its references"):
        type_of({"$ref": "gone.json"})


def test_what_is_made_of_a_type_is_that_type_again() -> None:
    kind = pa.struct(
        [
            pa.field("i", pa.int32(), nullable=False),
            ("l", pa.int64()),
            ("f", pa.float32()),
            ("d", pa.float64()),
            ("s", pa.string()),
            ("b", pa.binary()),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            ("price", pa.decimal128(12, 2)),
            ("many", pa.list_(pa.string())),
            ("by", pa.map_(pa.string(), pa.int8())),
            ("one", pa.struct([("x", pa.bool_())])),
        ]
    )
    made = json_schema_of(kind, title="t", place="column value")
    assert made["required"] == ["i"]
    assert type_of(made) == spark_name(kind)
    JsonEncoder("value").check(kind)
