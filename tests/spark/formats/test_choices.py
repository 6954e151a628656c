"""Formats by name, the two plain ones, and schemas as users write them."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from moldau.spark.formats import FormatError, decoder_of, encoder_of, infer_json, wants_inference
from moldau.spark.formats.json.decoder import JsonDecoder
from moldau.spark.formats.schema_text import parse_schema_text
from moldau.spark.formats.type_names import ddl_of, spark_name, struct_fields
from tests.spark.formats.types import structs


def test_an_unknown_format_lists_what_there_is() -> None:
    with pytest.raises(FormatError, match=r"option valueFormat = 'xml': allowed is one of binary, string, json, avro"):
        decoder_of("xml", {}, side="value")
    with pytest.raises(FormatError, match=r"schema\.registry\.url is missing: keyFormat=protobuf"):
        encoder_of("protobuf", {}, side="key")


def test_a_missing_schema_is_named() -> None:
    with pytest.raises(FormatError, match="option keyAvroSchema is missing"):
        decoder_of("avro", {}, side="key")
    assert wants_inference("JSON", {"keySchema": "a INT"}, side="value")
    assert not wants_inference("json", {"valueschema": "a INT"}, side="value")


def test_binary_is_what_it_is() -> None:
    column = pa.array([b"\xff", None], pa.binary())
    assert decoder_of("binary", {}, side="key").decode(column).values == column
    assert encoder_of("binary", {}, side="key").encode(pa.array(["é", None])).to_pylist() == ["é".encode(), None]
    with pytest.raises(FormatError, match="column value is bigint"):
        encoder_of("binary", {}, side="value").check(pa.int64())


def test_text_that_is_not_utf8_fails_alone() -> None:
    found = decoder_of("string", {}, side="key").decode(pa.array([b"a", b"b\xff", None], pa.binary()))
    assert found.values.to_pylist() == ["a", None, None]
    assert found.failed is not None
    assert found.failed.to_pylist() == [False, True, False]
    assert found.reasons == ["key: not UTF-8 at byte 1"]


def test_text_of_plain_values() -> None:
    made = encoder_of("string", {}, side="value")
    assert made.encode(pa.array([5, None])).to_pylist() == [b"5", None]
    with pytest.raises(FormatError, match="use valueFormat=json"):
        made.check(pa.list_(pa.int64()))


SPARK_JSON = StructType.fromJson(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": False, "metadata": {}},
            {
                "name": "a",
                "type": {"type": "array", "elementType": "decimal(9,2)", "containsNull": False},
                "nullable": True,
                "metadata": {},
            },
            {
                "name": "m",
                "type": {"type": "map", "keyType": "string", "valueType": "timestamp_ntz", "valueContainsNull": True},
                "nullable": True,
                "metadata": {},
            },
        ],
    }
).json()
JSON_SCHEMA = {
    "type": "object",
    "required": ["id", "note"],
    "properties": {
        "id": {"type": "integer"},
        "note": {"type": ["string", "null"]},
        "at": {"type": "string", "format": "date-time"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "object", "additionalProperties": {"type": "number"}},
    },
}


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("id BIGINT NOT NULL, `a b` STRING COMMENT 'it''s'", "id: int64 not null, a b: string"),
        ("id: long, s: struct<x:int,y:array<map<string,double>>>", "id: int64, s: struct<x: int32, y: list<item: map<string, double>>>"),  # noqa: E501
        ("struct<n:decimal(10,2),d:decimal,v:varchar(5)>", "n: decimal128(10, 2), d: decimal128(10, 0), v: string"),
        ("timestamp TIMESTAMP, date DATE, int INT", "timestamp: timestamp[us, tz=UTC], date: date32[day], int: int32"),
        (SPARK_JSON, "id: int64 not null, a: list<item: decimal128(9, 2) not null>, m: map<string, timestamp[us]>"),
        (json.dumps(JSON_SCHEMA), "id: int64 not null, note: string, at: timestamp[us, tz=UTC], tags: list<item: string not null>, sizes: map<string, double>"),  # noqa: E501
    ],
)  # fmt: skip
def test_schemas_as_users_write_them(text: str, fields: str) -> None:
    parsed = parse_schema_text(text, place="option valueSchema")
    said = str(parsed).replace(" ('sizes')", "").replace("double not null", "double")
    assert said.split(" metadata")[0] == f"struct<{fields}>"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("id BIGNT", "type 'BIGNT' is not one of boolean"),
        ("id", "type 'id' is not one of"),
        ("id INT,", "expected a column's name, found 'the end'"),
        ("id INT id2 INT", "expected ',', found 'id2'"),
        ("a ARRAY<INT", "expected '>', found 'the end'"),
        ("a INT, a STRING", "field a is there twice"),
        ("a DECIMAL(40,2)", "decimal(40,2) does not exist"),
        ("a INT NOT", "NOT must be followed by NULL"),
        ("a INT; b INT", "'; b INT' is not understood at character 6"),
        ("{", "begins like JSON and is not"),
        ('{"type":"tuple"}', "a JSON Schema is read where"),
        ('{"type":"struct","fields":[{"name":"a"}]}', "'type' is missing"),
    ],
)
def test_a_schema_that_is_wrong_says_where(text: str, said: str) -> None:
    with pytest.raises(FormatError) as refused:
        parse_schema_text(text, place="option valueSchema")
    assert str(refused.value).startswith("option valueSchema")
    assert said in str(refused.value)


def without_flags(arrow_type: pa.DataType) -> str:
    return spark_name(arrow_type)


@settings(max_examples=60, deadline=None)
@given(structs())
def test_ddl_that_was_written_is_read_again(arrow_type: pa.StructType) -> None:
    text = ddl_of(pa.schema(struct_fields(arrow_type)))
    assert without_flags(parse_schema_text(text, place="x")) == without_flags(arrow_type)


def test_types_are_widened_until_all_samples_fit() -> None:
    samples = [
        b'{"n":1,"x":1,"t":"a","o":{"b":1},"l":[1],"e":{}}',
        b'{"n":2.5,"x":"s","o":{"a":null},"l":[null,2.5],"big":18446744073709551615}',
        b"{",
        None,
    ]
    inferred = infer_json(samples)
    assert inferred.sentence() == (
        "inferred from 3 records, 1 of them not readable: big decimal(38,0), e string, l array<double>, n double, "
        "o struct<a:string,b:bigint>, t string, x string"
    )
    assert infer_json(list(reversed(samples))).schema == inferred.schema


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ([], "there are no records"),
        ([b"x"], "none of 1 records is JSON (not JSON: "),
        ([b"[1]"], "not all JSON objects"),
    ],
)
def test_nothing_to_infer_from(samples: list[bytes], said: str) -> None:
    with pytest.raises(FormatError) as refused:
        infer_json(samples)
    assert said in str(refused.value)


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from("abcd"), VALUES, min_size=1, max_size=4), min_size=1, max_size=6),
    st.randoms(),
)
def test_every_sample_fits_what_was_inferred(records: list[Any], order: random.Random) -> None:
    samples = [json.dumps(record).encode() for record in records]
    schema = infer_json(samples).schema
    order.shuffle(samples)
    assert infer_json(samples).schema == schema
    found = JsonDecoder(pa.struct(list(schema)), side="value").decode(pa.array(samples, pa.binary()))
    assert found.reasons == []
