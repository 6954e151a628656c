"""Avro to typed columns and back: exact, and with the place where a record stops making sense."""

from __future__ import annotations

import io
import json
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.spark.formats import Decoder, EncodingFailed, FormatError, decoder_of, encoder_of
from moldau.spark.formats.avro.decoder import AvroDecoder
from moldau.spark.formats.avro.encoder import AvroEncoder, derived_schema
from moldau.spark.formats.avro.schema import parse_avro_schema, parse_writer
from tests.spark.formats.types import columns

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": ["null", "double"], "default": None},
        {"name": "paid", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "DONE"]}},
        {"name": "before", "type": ["null", "State"]},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
    ],
}
ONE = {
    "id": 7, "price": None, "paid": Decimal("12.34"), "at": datetime(2024, 1, 1, tzinfo=UTC), "day": date(2024, 1, 2),
    "state": "DONE", "before": "OPEN", "tags": {"a": 1},
}  # fmt: skip


def written(record: Any, schema: Any = ORDER) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), record)
    return stream.getvalue()


def decoder(schema: Any = ORDER) -> Decoder:
    return decoder_of("avro", {"valueAvroSchema": json.dumps(schema)}, side="value")


def reason(record: bytes, schema: Any = ORDER) -> str:
    found = decoder(schema).decode(pa.array([record], pa.binary()))
    assert found.values.to_pylist() == [None]
    (only,) = found.reasons
    return only


def test_a_record_of_every_kind_of_field() -> None:
    made = pickle.loads(pickle.dumps(decoder()))
    found = made.decode(pa.array([written(ONE), None], pa.binary()))
    assert found.failed is None
    assert found.values.to_pylist() == [ONE | {"tags": [("a", 1)]}, None]
    assert found.values.type == made.arrow_type
    assert not made.arrow_type.field("id").nullable
    assert made.arrow_type.field("price").nullable


def test_bytes_end_early_or_go_on() -> None:
    record = written(ONE)
    assert reason(record[:-4]) == "value: field tags[0]: expected long, and the bytes end here"
    assert reason(record + b"ab") == "value: 2 bytes are left behind the end of the record"
    assert reason(b"") == "value: field id: expected long, and the bytes end here"


def test_bytes_of_a_registry_are_recognised() -> None:
    assert "begin like its schema 42" in reason(b"\0\0\0\0\x2a" + written(ONE))


@pytest.mark.parametrize(
    ("schema", "record", "said"),
    [
        ("int", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "expected int, got 9223372036854775807 (out of range)"),
        ("string", b"\x04\xff\xff", "expected string, got bytes that are not UTF-8 at 0"),
        ("string", b"\x03", "expected string, got the length -2"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x04", "expected one of 1 symbols, got number 2"),
        (["null", "int"], b"\x08", "expected one of 2 branches of a union, got number 4"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 1},
            b"\x04\x03\xe8",
            "expected decimal(2,1), got a decimal of more than 2 digits",
        ),
        (
            {"type": "array", "items": "double"},
            b"\xfe\xff\xff\xff\x0f\x00",
            "expected double of 8 bytes, and 1 are left",
        ),
    ],
)
def test_what_does_not_fit_says_why(schema: Any, record: bytes, said: str) -> None:
    assert reason(record, schema).endswith(said)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ('{"type": "record"', "is not JSON"),
        ('{"type": "recrd", "name": "x"}', "is not an Avro schema"),
        ('["string", "int"]', "a union of string, int has no type of a column"),
        ('{"type":"record","name":"N","fields":[{"name":"n","type":["null","N"]}]}', "N holds itself"),
        ('{"type":"array","items":"null"}', "'null' alone has no type"),
        ('{"type":"bytes","logicalType":"decimal","precision":50}', "decimal(50,0) does not exist"),
    ],
)
def test_a_schema_that_can_not_be_a_column_is_refused(schema: str, said: str) -> None:
    with pytest.raises(FormatError) as refused:
        decoder_of("avro", {"valueAvroSchema": schema}, side="value")
    assert "option valueAvroSchema" in str(refused.value)
    assert said in str(refused.value)


def test_a_record_of_an_older_schema_is_read_by_the_newer() -> None:
    place = "option valueAvroSchema"
    older = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "int"}, {"name": "gone", "type": "string"}],
    }
    newer = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "int", "default": 5}],
    }
    made = AvroDecoder(parse_avro_schema(json.dumps(newer), place=place), "value", parse_writer(json.dumps(older)))
    found = made.decode(pa.array([written({"a": 1, "gone": "x"}, older)]))
    assert found.values.to_pylist() == [{"a": 1, "b": 5}]


@settings(max_examples=100, deadline=None)
@given(columns())
def test_what_the_encoder_writes_is_read_again(column: pa.Array) -> None:
    schema = derived_schema(column.type, "column value")
    found = AvroDecoder(schema, side="value").decode(AvroEncoder(None, side="value").encode(column))
    assert found.reasons == []
    assert found.values.to_pylist() == column.to_pylist()
    assert found.values.type == column.type


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=30), max_size=5), st.integers(0, 20), st.binary(max_size=3))
def test_any_bytes_give_values_or_reasons(records: list[bytes], cut: int, patch: bytes) -> None:
    record = written(ONE)
    damaged = record[:cut] + patch + record[cut + len(patch) :]
    found = decoder().decode(pa.array([*records, damaged], pa.binary()))
    assert len(found.values) == len(records) + 1
    assert sum(found.failed.to_pylist() if found.failed is not None else []) == len(found.reasons)


def test_a_given_schema_decides_what_is_written() -> None:
    made = encoder_of("avro", {"VALUEAVROSCHEMA": json.dumps(ORDER)}, side="value")
    column = decoder().decode(pa.array([written(ONE), None], pa.binary())).values
    made.check(column.type)
    assert made.encode(column).to_pylist() == [written(ONE), None]


def test_a_column_that_does_not_fit_the_schema_is_refused_before_anything_runs() -> None:
    made = encoder_of("avro", {"valueAvroSchema": json.dumps(ORDER)}, side="value")
    with pytest.raises(FormatError, match="field extra is not in the schema"):
        made.check(pa.struct([("id", pa.int64()), ("extra", pa.int64())]))
    with pytest.raises(FormatError, match="field paid of the schema is missing"):
        made.check(pa.struct([("id", pa.int64())]))


def test_a_row_that_the_schema_can_not_express_is_named() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
    made = encoder_of("avro", {"valueAvroSchema": json.dumps(schema)}, side="value")
    with pytest.raises(EncodingFailed, match=r"value: row 1: Field\(R.n\) is None"):
        made.encode(pa.array([{"n": 1}, {"n": None}], pa.struct([("n", pa.int32())])))
    with pytest.raises(EncodingFailed, match=r"value: row 1: field n: .*not in range"):
        made.encode(pa.array([{"n": 1}, {"n": 1 << 40}], pa.struct([("n", pa.int64())])))


def test_a_name_that_avro_lacks() -> None:
    with pytest.raises(FormatError, match="field 'order-id': Avro's names"):
        encoder_of("avro", {}, side="value").check(pa.struct([("order-id", pa.int64())]))
