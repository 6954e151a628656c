"""Messages as columns, and columns as messages."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from moldau.schemas.protobuf.schema import parse
from moldau.spark.formats import EncodingFailed, FormatError
from moldau.spark.formats.protobuf.decoder import ProtobufDecoder
from moldau.spark.formats.protobuf.derived import proto_text_of
from moldau.spark.formats.protobuf.encoder import ProtobufEncoder
from moldau.spark.formats.type_names import spark_name

ALL = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "google/type/date.proto";
message Order {
  int32 id = 1;
  uint64 big = 2;
  uint32 unsigned = 3;
  optional string name = 4;
  State state = 5;
  google.protobuf.Timestamp at = 6;
  google.type.Date day = 7;
  google.protobuf.StringValue note = 8;
  google.protobuf.Struct extra = 9;
  repeated Line lines = 10;
  map<string, Line> by_name = 11;
  oneof paid { string card = 12; bool cash = 13; }
  Nothing nothing = 14;
  repeated double weights = 15;
  bytes raw = 16;
}
message Line { string item = 1; repeated string tags = 2; }
message Nothing {}
enum State { NEW = 0; SENT = 1; }
"""
TYPE = (
    "struct<id:int,big:decimal(20,0),unsigned:bigint,name:string,state:string,at:timestamp,day:date,note:string,"
    "extra:string,lines:array<struct<item:string,tags:array<string>>>,by_name:map<string,struct<item:string,"
    "tags:array<string>>>,card:string,cash:boolean,nothing:boolean,weights:array<double>,raw:binary>"
)


@pytest.fixture(scope="module")
def order() -> Any:
    return parse(ALL).message_class()


def test_a_message_is_columns(order: Any) -> None:
    decoder = ProtobufDecoder(order, side="value")
    assert spark_name(decoder.arrow_type) == TYPE
    message = order(id=-1, big=1 << 63, unsigned=1 << 31, state=1, card="visa", weights=[0.5], raw=b"\0")
    message.at.FromJsonString("2024-02-29T12:00:00.000001Z")
    message.day.year, message.day.month, message.day.day = 2024, 2, 29
    message.note.value = ""
    message.extra.update({"a": [1, None]})
    message.lines.add(item="tea", tags=["x", "y"])
    message.by_name["k"].item = "cup"
    message.nothing.SetInParent()
    later = order()
    later.state = 7
    found = decoder.decode(pa.array([message.SerializeToString(), None, later.SerializeToString(), b"\xff"]))
    first, none, second, broken = found.values.to_pylist()
    assert first == {
        "id": -1, "big": 1 << 63, "unsigned": 1 << 31, "name": None, "state": "SENT",
        "at": datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC), "day": date(2024, 2, 29), "note": "",
        "extra": '{"a": [1.0, null]}', "lines": [{"item": "tea", "tags": ["x", "y"]}],
        "by_name": [("k", {"item": "cup", "tags": []})], "card": "visa", "cash": None, "nothing": True,
        "weights": [0.5], "raw": b"\0",
    }  # fmt: skip
    assert none is None
    assert broken is None
    assert (second["id"], second["state"], second["at"], second["lines"]) == (0, "7", None, [])
    assert len(found.reasons) == 1
    assert found.reasons[0].startswith("value: no shop.Order: ")


def test_a_time_that_no_column_holds_is_one_records_affair(order: Any) -> None:
    message = order()
    message.day.month = 13
    found = ProtobufDecoder(order, side="value").decode(
        pa.array([order(id=1).SerializeToString(), message.SerializeToString()])
    )
    assert [row and row["id"] for row in found.values.to_pylist()] == [1, None]
    assert found.reasons == ["value: no date: year 0, month 13, day 0"]


def test_what_is_written_is_read_again(order: Any) -> None:
    decoder = ProtobufDecoder(order, side="value")
    rows = [
        {
            "id": 1, "big": 1 << 63, "name": "é", "state": "SENT", "at": datetime(1900, 1, 1, tzinfo=UTC),
            "day": date(2024, 2, 29), "note": "n", "extra": '{"a": "b"}', "lines": [{"item": "tea", "tags": ["x"]}],
            "by_name": [("k", {"item": "cup", "tags": []})], "cash": False, "nothing": True, "weights": [1.5],
            "raw": b"r",
        },
        None,
    ]  # fmt: skip
    column = pa.array(rows, decoder.arrow_type)
    encoder = ProtobufEncoder(order, side="value")
    encoder.check(column.type)
    again = decoder.decode(encoder.encode(column)).values.to_pylist()
    assert again[1] is None
    assert again[0] == {**column.to_pylist()[0], "unsigned": 0}


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (pa.int64(), "a message of Protobuf needs a struct"),
        (pa.struct([("ids", pa.int32())]), "field ids is not in the schema's message shop.Order"),
        (pa.struct([("id", pa.list_(pa.int32()))]), "field id: array<int> does not fit int"),
        (pa.struct([("lines", pa.list_(pa.string()))]), "field lines: string does not fit the message's field"),

        (pa.struct([("raw", pa.struct([("a", pa.int8())]))]), "field raw: struct<a:tinyint> does not fit"),
    ],
)  # fmt: skip
def test_a_column_that_does_not_fit_is_refused(order: Any, kind: pa.DataType, said: str) -> None:
    with pytest.raises(FormatError) as failed:
        ProtobufEncoder(order, side="value").check(kind)
    assert said in str(failed.value)


def test_a_value_that_does_not_fit_names_its_row(order: Any) -> None:
    column = pa.array([{"state": "NEW"}, {"state": "LOST"}], pa.struct([("state", pa.string())]))
    with pytest.raises(EncodingFailed, match="row 1: field state: 'LOST' is none of the symbols"):
        ProtobufEncoder(order, side="value").encode(column)


def test_a_derived_message_keeps_the_numbers_that_fields_have() -> None:
    before = pa.struct([("id", pa.int64()), ("gone", pa.string()), ("one", pa.struct([("x", pa.int32())]))])
    known = parse(proto_text_of(before, full_name="shop.Order", place="p")).message_class().DESCRIPTOR
    after = pa.struct(
        [("new", pa.date32()), ("one", pa.struct([("y", pa.bool_()), ("x", pa.int32())])), ("id", pa.int64())]
    )
    made = parse(proto_text_of(after, full_name="shop.Order", known=known, place="p")).message_class().DESCRIPTOR
    assert made.full_name == "shop.Order"
    assert {field.name: field.number for field in made.fields} == {"new": 4, "one": 3, "id": 1}
    one = made.fields_by_name["one"].message_type
    assert {field.name: field.number for field in one.fields} == {"x": 1, "y": 2}


def test_what_protobuf_has_no_form_for_is_told() -> None:
    for kind in (pa.decimal128(5, 2), pa.list_(pa.list_(pa.int8())), pa.timestamp("us")):
        with pytest.raises(FormatError, match="field x: Protobuf has no form for"):
            proto_text_of(pa.struct([("x", kind)]), full_name="R", place="column value")
