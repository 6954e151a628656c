"""Payloads of Protobuf and their JSON form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.schemas.model import InvalidValue, Json
from moldau.schemas.protobuf import parse

SCHEMA = parse(
    """
    syntax = "proto3";
    package p;
    import "google/protobuf/any.proto";
    import "google/protobuf/struct.proto";
    import "google/protobuf/wrappers.proto";
    import "google/protobuf/field_mask.proto";
    message M {
      int32 some_number = 1;
      int64 big = 2;
      bytes raw = 3;
      double real = 4;
      E e = 5;
      optional string maybe = 6;
      repeated M more = 7;
      map<int32, E> by_number = 8;
      oneof one { string s = 9; bool b = 10; }
      google.protobuf.Any any = 11;
      google.protobuf.Struct struct = 12;
      google.protobuf.Int64Value boxed = 13;
      google.protobuf.FieldMask mask = 14;
      enum E { ZERO = 0; ONE = 1; }
      message Inner { int32 a = 1; message Innermost { int32 b = 1; } }
    }
    message Second { string x = 1; }
    """
)
PROTO2 = parse("message M { required int32 a = 1; optional group G = 2 { optional int32 b = 3; } }")
DEFAULTS: dict[str, Json] = {
    "someNumber": 0,
    "big": "0",
    "raw": "",
    "real": 0.0,
    "e": "ZERO",
    "more": [],
    "byNumber": {},
}


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"someNumber": -1, "big": "9007199254740993", "raw": "AAE=", "real": "NaN", "e": "ONE"},
        {"maybe": "", "b": False, "byNumber": {"7": "ONE"}},
        {"s": "x", "boxed": "5", "struct": {"a": [1.0, None, {"b": True}]}, "mask": "a,b"},
        {"any": {"@type": "type.googleapis.com/p.Second", "x": "y"}},
    ],
)
def test_values_come_back_with_their_defaults(value: dict[str, Json]) -> None:
    assert SCHEMA.decode(SCHEMA.encode(value)) == DEFAULTS | value


def test_fields_may_have_their_own_names() -> None:
    assert SCHEMA.encode({"some_number": 1}) == SCHEMA.encode({"someNumber": 1}) == b"\x08\x01"


@pytest.mark.parametrize(
    ("message", "payload", "value"),
    [
        ((), "", DEFAULTS),
        ((0,), "0801", DEFAULTS | {"someNumber": 1}),
        ((1,), "0a0178", {"x": "x"}),
        ((0, 1), "0801", {"a": 1}),  # of the descriptor, where the map's entry comes first
        ((0, 0), "0801", {"a": 1}),  # of Java's clients
        ((0, 1, 0), "0802", {"b": 2}),
    ],
)
def test_message_indexes_lead_to_messages(message: tuple[int, ...], payload: str, value: Json) -> None:
    assert SCHEMA.decode(bytes.fromhex(payload), message) == value
    assert SCHEMA.decode(SCHEMA.encode(value, message), message) == value


@pytest.mark.parametrize(
    ("name", "indexes"),
    [("p.M", (0,)), ("M", (0,)), (".p.Second", (1,)), ("p.M.Inner", (0, 1)), ("M.Inner.Innermost", (0, 1, 0))],
)
def test_messages_are_found_by_name(name: str, indexes: tuple[int, ...]) -> None:
    assert SCHEMA.message_indexes(name) == indexes


@pytest.mark.parametrize("message", [(2,), (0, 2), (-1,), (0, 1, 0, 0), (2**31 - 1,)])
def test_indexes_that_lead_nowhere_are_an_invalid_value(message: tuple[int, ...]) -> None:
    with pytest.raises(InvalidValue, match="no message at the indexes"):
        SCHEMA.decode(b"", message)


def test_a_name_that_is_no_messages_is_told_with_those_that_are() -> None:
    with pytest.raises(InvalidValue, match=r"no message 'p\.N'; it has: M, M\.Inner, M\.Inner\.Innermost, Second"):
        SCHEMA.message_indexes("p.N")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"someNumber": "x"}, "someNumber"),
        ({"someNumber": 2**31}, "someNumber"),
        ({"unknown": 1}, "unknown"),
        ({"e": "TWO"}, "TWO"),
        ({"raw": "a"}, "raw"),
        ({"s": "a", "b": True}, "oneof"),
        ({"any": {"@type": "type.googleapis.com/p.Gone"}}, "p.Gone"),
        ({"more": {}}, "more"),
        ({"byNumber": {"x": "ONE"}}, "byNumber|by_number"),
        ([], r"no p\.M: expected an object"),
        ("text", r"no p\.M"),
        (7, r"no p\.M"),
    ],
)
def test_a_value_that_does_not_fit_names_its_field(value: Json, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        SCHEMA.encode(value)


def test_a_value_deeper_than_payloads_go_is_refused() -> None:
    value: dict[str, Json] = {}
    for _ in range(5_000):
        value = {"more": [value]}
    with pytest.raises(InvalidValue):
        SCHEMA.encode(value)


def test_a_payload_deeper_than_payloads_go_is_refused() -> None:
    payload = b""
    for _ in range(3_000):
        size = len(payload)
        payload = b"\x3a" + bytes((size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14)) + payload
    with pytest.raises(InvalidValue, match=r"no p\.M"):
        SCHEMA.decode(payload)


def test_a_required_field_has_to_be_there() -> None:
    with pytest.raises(InvalidValue, match="a"):
        PROTO2.encode({})
    assert PROTO2.decode(PROTO2.encode({"a": 1, "g": {"b": 2}})) == {"a": 1, "g": {"b": 2}}


@given(st.binary(max_size=200))
def test_any_payload_is_a_value_or_invalid(payload: bytes) -> None:
    try:
        value = SCHEMA.decode(payload)
    except InvalidValue:
        return
    try:
        again = SCHEMA.encode(value)
    except InvalidValue:
        return  # such as a time that only the wire can say
    assert SCHEMA.decode(again) == value or "NaN" in str(value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["more", "any", "struct", "@type", "e", "byNumber", "mask", "s"]), inner)
        ),
        max_leaves=8,
    )
)
def test_any_json_is_a_payload_or_invalid(value: Json) -> None:
    try:
        payload = SCHEMA.encode(value)
    except InvalidValue:
        return
    SCHEMA.decode(payload)


def test_a_schema_that_takes_a_well_known_name_is_no_danger() -> None:
    own = parse('syntax = "proto3"; package google.protobuf; message Timestamp { string x = 1; }')
    with pytest.raises(InvalidValue):
        own.encode({"x": "y"})
