"""Avro's values: binary and JSON, beside fastavro."""

from __future__ import annotations

import io
import json

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.schemas import avro
from moldau.schemas.model import InvalidValue, Json

ORDER = json.dumps(
    {"type": "record", "name": "Order", "namespace": "n", "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "size", "type": {"type": "enum", "name": "Size", "symbols": ["S", "L"]}, "default": "S"},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
        {"name": "prices", "type": {"type": "map", "values": ["int", "double", "null"]}, "default": {}},
        {"name": "raw", "type": "bytes", "default": "\u00ff"},
        {"name": "next", "type": ["null", "Order"], "default": None},
    ]}
)  # fmt: skip
SCHEMA = avro.parse(ORDER)

# The schema, the value in JSON and what of it is written: the encoding of the specification.
ENCODED: list[tuple[str, Json, bytes]] = [
    ('"null"', None, b""),
    ('"boolean"', True, b"\x01"),
    ('"int"', -1, b"\x01"),
    ('"int"', 64, b"\x80\x01"),
    ('"int"', 2147483647, b"\xfe\xff\xff\xff\x0f"),
    ('"long"', -(2**63), b"\xff" * 9 + b"\x01"),
    ('"float"', 0.1, b"\xcd\xcc\xcc\x3d"),
    ('"float"', "NaN", b"\x00\x00\xc0\x7f"),
    ('"double"', "-Infinity", b"\x00\x00\x00\x00\x00\x00\xf0\xff"),
    ('"double"', 1.5, b"\x00\x00\x00\x00\x00\x00\xf8\x3f"),
    ('"string"', "é", b"\x04\xc3\xa9"),
    ('"bytes"', "\u00ff\u0000", b"\x04\xff\x00"),
    ('{"type":"fixed","name":"F","size":2}', "\u0001\u00fe", b"\x01\xfe"),
    ('{"type":"enum","name":"E","symbols":["A","B"]}', "B", b"\x02"),
    ('{"type":"array","items":"int"}', [1, 2], b"\x04\x02\x04\x00"),
    ('{"type":"array","items":"int"}', [], b"\x00"),
    ('{"type":"map","values":"int"}', {"a": 1}, b"\x02\x02a\x02\x00"),
    ('["null","string"]', None, b"\x00"),
    ('["null","string"]', {"string": "a"}, b"\x02\x02a"),
    ('["int",{"type":"array","items":"int"}]', {"array": [1]}, b"\x02\x02\x02\x00"),
    ('["null",{"type":"record","name":"n.R","fields":[]}]', {"n.R": {}}, b"\x02"),
    ('{"type":"int","logicalType":"date"}', 19_000, b"\xf0\xa8\x02"),
    ('{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}', "\u0004\u00d2", b"\x04\x04\xd2"),
]


@pytest.mark.parametrize(("text", "value", "payload"), ENCODED)
def test_what_is_written_and_read(text: str, value: Json, payload: bytes) -> None:
    schema = avro.parse(text)
    assert schema.encode(value) == payload
    assert schema.decode(payload) == value


def test_fields_with_defaults_may_be_absent() -> None:
    assert SCHEMA.decode(SCHEMA.encode({"id": 1})) == {
        "id": 1, "note": None, "size": "S", "tags": [], "prices": {}, "raw": "\u00ff", "next": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "plain", "said"),
    [
        ('["null","string"]', "a", {"string": "a"}),
        ('["null","int","string"]', 5, {"int": 5}),
        ('["null",{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}]', {"a": 1}, {"R": {"a": 1}}),
        ('["null",{"type":"map","values":"int"}]', {"x": 1}, {"map": {"x": 1}}),
    ],
)
def test_a_value_of_a_union_may_be_plain_if_one_branch_alone_takes_it(text: str, plain: Json, said: Json) -> None:
    schema = avro.parse(text)
    assert schema.decode(schema.encode(plain)) == said


@pytest.mark.parametrize(
    ("text", "value", "told"),
    [
        ('["int","long"]', 5, "5 could be several of int, long"),
        ('["string","bytes"]', "a", "could be several of string, bytes"),
        ('["null","int"]', "a", '"a" is none of the union\'s null, int'),
        ('"int"', 2**31, "2147483648 has more than 32 bits"),
        ('"int"', 1.0, "1.0 is no int"),
        ('"int"', True, "true is no int"),
        ('"boolean"', 1, "1 is no boolean"),
        ('"string"', None, "null is no string"),
        ('"string"', "\ud800", "half a surrogate pair"),
        ('"bytes"', "\u0100", "stands for no byte"),
        ('"float"', 1e39, "larger than any float"),
        ('"double"', 10**400, "larger than any double"),
        ('{"type":"fixed","name":"F","size":2}', "a", "1 bytes; the fixed F has 2"),
        ('{"type":"enum","name":"E","symbols":["A"]}', "B", '"B" is no symbol of the enum E'),
        ('{"type":"array","items":"int"}', [1, "a"], 'in [1]: "a" is no int'),
        ('{"type":"map","values":"int"}', {"k": "a"}, 'in ["k"]: "a" is no int'),
        (ORDER, {"id": 1, "x": 1}, 'the record n.Order has no field "x"'),
        (ORDER, {}, "in id: no value, and the field has no default"),
        (ORDER, {"id": 1, "next": {"n.Order": {"id": "a"}}}, 'in next: in id: "a" is no long'),
        (ORDER, [], "an array is no record n.Order"),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_its_field(text: str, value: Json, told: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        avro.parse(text).encode(value)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "payload", "told"),
    [
        ('"int"', b"", "it ends inside a number, at byte 0"),
        ('"int"', b"\x02\x02", "the value ends at byte 1, and 1 more follow"),
        ('"int"', b"\xff" * 9 + b"\x01", "has more than 32 bits"),
        ('"long"', b"\xff" * 11, "a number of more than 10 bytes"),
        ('"string"', b"\x08a", "4 bytes are said to follow byte 1; 1 do"),
        ('"string"', b"\x01", "-1 bytes are said to follow"),
        ('"string"', b"\x02\xff", "the string at byte 0 is no UTF-8"),
        ('"boolean"', b"\x02", "2 is no boolean"),
        ('["null","int"]', b"\x04", "branch 2 of a union that has 2"),
        ('{"type":"enum","name":"E","symbols":["A"]}', b"\x02", "symbol 1 of an enum that has 1"),
        ('{"type":"array","items":"null"}', b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", "more items than"),
        ('{"type":"record","name":"L","fields":[{"name":"n","type":["null","L"]}]}', b"\x02" * 9_999, "nested deeper"),
        (ORDER, b"\x02\x02\x02", "in note: "),
    ],
)
def test_a_payload_that_is_no_value_is_told(text: str, payload: bytes, told: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        avro.parse(text).decode(payload)
    assert told in str(caught.value)


def test_blocks_with_their_sizes_are_read() -> None:
    assert avro.parse('{"type":"array","items":"int"}').decode(b"\x03\x04\x02\x04\x02\x06\x00") == [1, 2, 3]


values = st.fixed_dictionaries(
    {"id": st.integers(-(2**63), 2**63 - 1), "note": st.none() | st.text(), "size": st.sampled_from("SL"),
     "tags": st.lists(st.text(), max_size=3),
     "prices": st.dictionaries(st.text(), st.integers(-(2**31), 2**31 - 1) | st.floats(allow_nan=False), max_size=3),
     "raw": st.binary(), "next": st.none()}
)  # fmt: skip


@given(values)
@settings(max_examples=60, deadline=None)
def test_fastavro_writes_the_same_bytes(value: dict[str, Json]) -> None:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(ORDER)), value)
    read = SCHEMA.decode(out.getvalue())
    assert isinstance(read, dict)
    assert read["id"] == value["id"]
    assert SCHEMA.encode(read) == out.getvalue()
