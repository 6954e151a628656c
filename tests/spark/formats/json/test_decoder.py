"""JSON to typed columns: the quick way and the exact way agree on every record, and each misfit has its reason."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moldau.spark.formats import FormatError, decoder_of
from moldau.spark.formats.json import decoder as json_decoder
from moldau.spark.formats.json.decoder import JsonDecoder, _Run
from tests.spark.formats.types import columns

FIELDS = (
    "i INT, l BIGINT, f FLOAT, d DOUBLE, b BOOLEAN, s STRING, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, "
    "price DECIMAL(10,2), many ARRAY<INT>, one STRUCT<x: BIGINT NOT NULL, y: STRING>"
)


def decoder(schema: str) -> JsonDecoder:
    made = decoder_of("json", {"valueSchema": schema}, side="value")
    assert isinstance(made, JsonDecoder)
    return made


def decoded(schema: str, *records: bytes | None) -> list[Any]:
    """Values, and reasons in the place of those that failed."""
    found = decoder(schema).decode(pa.array(records, pa.binary()))
    found.values.validate(full=True)
    assert found.values.type == decoder(schema).arrow_type
    reasons = iter(found.reasons)
    failed = found.failed.to_pylist() if found.failed is not None else [False] * len(records)
    return [next(reasons) if bad else value for bad, value in zip(failed, found.values.to_pylist(), strict=True)]


def test_members_become_fields_and_others_are_left_out() -> None:
    assert decoded("id BIGINT, name STRING", b'{"name":"a","id":1,"more":{"x":[1]}}', b"{}") == [
        {"id": 1, "name": "a"},
        {"id": None, "name": None},
    ]


def test_a_tombstone_is_null_and_no_failure() -> None:
    found = decoder("id BIGINT").decode(pa.array([None, b'{"id":1}', None], pa.binary()))
    assert found.failed is None
    assert found.values.to_pylist() == [None, {"id": 1}, None]


def test_the_record_null_is_null() -> None:
    assert decoded("id BIGINT", b"null") == [None]


def test_only_the_bad_rows_fail_in_a_long_run() -> None:
    records: list[bytes | None] = [json.dumps({"id": row}).encode() for row in range(5000)]
    records[17] = b'{"id":"x"}'
    records[18] = None
    records[4999] = b"{"
    found = decoder("id BIGINT").decode(pa.array(records, pa.binary()))
    assert found.failed is not None
    assert [row for row, bad in enumerate(found.failed.to_pylist()) if bad] == [17, 4999]
    assert found.reasons[0] == "value: field id: expected bigint, got 'x'"
    assert [found.values[row].as_py() for row in (16, 17, 18, 19)] == [{"id": 16}, None, None, {"id": 19}]


@pytest.mark.parametrize(
    ("schema", "record", "reason"),
    [
        ("price DOUBLE", b'{"price":"abc"}', "value: field price: expected double, got 'abc'"),
        ("i INT", b'{"i":3000000000}', "value: field i: expected int, got 3000000000 (out of range)"),
        ("i INT", b'{"i":1.5}', "value: field i: expected int, got 1.5"),
        ("i INT", b'{"i":true}', "value: field i: expected int, got true"),
        ("b BOOLEAN", b'{"b":"true"}', "value: field b: expected boolean, got 'true'"),
        ("f FLOAT", b'{"f":1e39}', "value: field f: expected float, got 1e39 (out of range)"),
        ("d DOUBLE", b'{"d":1e400}', "value: field d: expected double, got 1e400 (out of range)"),
        ("i INT NOT NULL", b"{}", "value: field i: missing, and the schema says NOT NULL"),
        ("i INT NOT NULL", b'{"i":null}', "value: field i: null, and the schema says NOT NULL"),
        ("a ARRAY<STRUCT<x: INT>>", b'{"a":[{},{"x":[]}]}', "value: field a[1].x: expected int, got an array"),
        ("m MAP<STRING,INT>", b'{"m":{"k":"v"}}', "value: field m['k']: expected int, got 'v'"),
        ("s STRUCT<x: INT>", b'{"s":5}', "value: field s: expected an object, got 5"),
        ("p DECIMAL(5,2)", b'{"p":1.234}', "value: field p: expected decimal(5,2), got 1.234 (too many digits behind the point)"),  # noqa: E501
        ("p DECIMAL(5,2)", b'{"p":99999}', "value: field p: expected decimal(5,2), got 99999 (out of range)"),
        ("t TIMESTAMP", b'{"t":1700000000}', "value: field t: expected timestamp as ISO 8601 text, got 1700000000"),
        ("t TIMESTAMP_NTZ", b'{"t":"2024-01-01T00:00:00Z"}', "value: field t: expected timestamp_ntz, got '2024-01-01T00:00:00Z' (it has a time zone)"),  # noqa: E501
        ("t DATE", b'{"t":"2024-02-30"}', "value: field t: expected a day of the calendar, got '2024-02-30'"),
        ("b BINARY", b'{"b":"*"}', "value: field b: expected binary as base64 text, got '*'"),
        ("s STRING", b'{"s":"\\ud800"}', "value: field s: expected string, got half of a surrogate pair, which is no character"),  # noqa: E501
        ("i INT", b"", "value: not JSON: it is empty"),
        ("i INT", b'{"i":1}{"i":2}', "value: not JSON: Extra data at character 8"),
        ("i INT", b'{"i":1},"x":2', "value: not JSON: Extra data at character 8"),
        ("i INT", b"[1]", "value: expected an object, got an array"),
        ("i INT", b'{"i":\xff}', "value: not UTF-8 at byte 5"),
        ("i INT", b'{"x":' + b"[" * 100_000, "value: not read: its JSON is nested too deeply"),
    ],
)  # fmt: skip
def test_a_record_that_does_not_fit_says_why(schema: str, record: bytes, reason: str) -> None:
    assert decoded(schema, record) == [reason]


@pytest.mark.parametrize(
    ("schema", "record", "value"),
    [
        ("d DOUBLE", b'{"d":"NaN"}', "nan"),
        ("d DOUBLE", b'{"d":-Infinity}', "-inf"),
        ("d DOUBLE", b'{"d":1}', "1.0"),
        ("f FLOAT", b'{"f":"INF"}', "inf"),
        ("s STRING", b'{"s":1.10}', "1.10"),
        ("s STRING", b'{"s":{"a":[1,true,null,"x"]}}', '{"a":[1,true,null,"x"]}'),
        ("s STRING", b'{"s":"\\u0000\\ud83d\\ude00"}', "\0😀"),
        ("p DECIMAL(5,2)", b'{"p":"1.1"}', "1.10"),
        ("p DECIMAL(5,2)", b'{"p":1.1000}', "1.10"),
        ("p DECIMAL(5,2)", b'{"p":12e1}', "120.00"),
        ("p DECIMAL(2,2)", b'{"p":0}', "0.00"),
        ("p DECIMAL(38,0)", b'{"p":99999999999999999999999999999999999999}', "9" * 38),
        ("t TIMESTAMP", b'{"t":"2024-01-01T02:00:00.5+02:00"}', "2024-01-01 00:00:00.500000+00:00"),
        ("t TIMESTAMP", b'{"t":"2024-01-01 02:00"}', "2024-01-01 02:00:00+00:00"),
        ("t TIMESTAMP", b'{"t":"2024-01-01T00:00:00.123456789Z"}', "2024-01-01 00:00:00.123456+00:00"),
        ("b BINARY", b'{"b":"AAE="}', "b'\\x00\\x01'"),
        ("i INT", b' \r\n{"i":\n1}\n', "1"),
        ("i INT", b'{"i":1,"i":2}', "2"),
    ],
)
def test_a_record_that_fits(schema: str, record: bytes, value: str) -> None:
    (found,) = decoded(schema, record)
    assert str(next(iter(found.values()))) == value


@pytest.mark.parametrize(
    "number", ["1e-1000000000", '"1e-1000000000"', '"1\\u0065-1000000000"', "1e-77", "1E-2147483647"]
)
def test_no_exponent_reaches_the_reader_that_would_crash(number: str) -> None:
    """Arrow's decimals end the process on some of these, and answer others with a wrong number."""
    (found,) = decoded("p DECIMAL(38,2)", f'{{"p":{number}}}'.encode())
    assert found.startswith("value: field p: expected decimal(38,2), got ")


def test_other_shapes_than_objects() -> None:
    assert decoded("array<bigint>", b"[1,2]", b"{}") == [[1, 2], "value: expected array<bigint>, got an object"]
    assert decoded("string", b'"a"', b"5") == ["a", "5"]


def test_a_decoder_travels_to_a_worker() -> None:
    travelled = pickle.loads(pickle.dumps(decoder(FIELDS)))
    assert travelled.decode(pa.array([b'{"i":1}'])).values[0].as_py()["i"] == 1


def test_a_map_needs_names_that_are_strings() -> None:
    with pytest.raises(FormatError, match="names of members are strings"):
        decoder("m MAP<INT,INT>")


SCALARS = st.sampled_from(
    [
        *(
            "1",
            "-0",
            "1.5",
            "1e2",
            "1E-3",
            "123456789012345678901",
            "0.1234567890123456789",
            "1e39",
            "1e400",
            "99999999999",
        ),
        *(
            "01",
            "+1",
            ".5",
            "tru",
            "true",
            "null",
            "NaN",
            "Inf",
            "-Infinity",
            '"NaN"',
            '""',
            '"x"',
            '"1.25"',
            '"1.255"',
        ),
        *('"2024-01-01"', '"2024-13-01"', '"0000-01-01"', '"2024-01-01T10"', '"2024-01-01 10:00:00.1234567"'),
        *('"1969-12-31T23:59:59.123456789Z"', '"2024-01-01T10:00:00.1234567890Z"', '"2024-01-01T10:00:00.1234567+02"'),
        *("false", "1.10", "-0.0E+05", "5.", "1.5.2", "1e5x", "01.5", "--1", "5 ", "\t7", '"\\"s\\":5"'),
        *('"2024-01-01T10:00:00Z"', '"2024-01-01T10:00:00+0230"', '"\\u00e9"', '"\\ud800"'),
        *("[1,2]", "[null]", "[]", "{}", '{"x":1}', '{"x":null}', '{"x":1,"y":"é"}'),
    ]
)
NAMES = st.sampled_from(["i", "l", "f", "d", "b", "s", "day", "at", "local", "price", "many", "one", "other"])
OBJECTS = st.lists(st.tuples(NAMES, SCALARS), max_size=3).map(
    lambda members: "{" + ",".join(f'"{name}":{value}' for name, value in members) + "}"
)
BROKEN = st.tuples(
    OBJECTS, st.integers(0, 30), st.sampled_from(["", "}", "{", '"', ",", "\n", "\t", "\0", '}{"i":1', "}}"])
).map(lambda drawn: drawn[0][: drawn[1]] + drawn[2] + drawn[0][drawn[1] :])


@settings(max_examples=150, deadline=None)
@given(st.lists(OBJECTS | BROKEN | SCALARS, max_size=40))
@example(['{"i":1', "}", '{"i":1}{"i":2}'])
@example(['{"i":1}{"i":2}', '{"s":"', '"}'])
def test_the_quick_way_and_the_exact_way_agree(records: list[str]) -> None:
    texts = pa.array([record.encode() for record in records], pa.binary())
    made = decoder(FIELDS)
    exact = _Run(made)
    exact.read_one_by_one(texts, first_row=0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_decoder, "ONE_BY_ONE_ROWS_MAX", 2)  # else a test's runs are too short to be cut
        whole = made.decode(texts)
    expected = pa.concat_arrays(exact.pieces)
    assert repr(whole.values.to_pylist()) == repr(expected.to_pylist())
    assert whole.reasons == list(exact.failures.values())
    for row, record in enumerate(texts):  # and each alone, where the quick way has no bad neighbour to hide behind
        alone = made.decode(pa.array([record.as_py()], pa.binary()))
        assert repr(alone.values.to_pylist()) == repr(expected.slice(row, 1).to_pylist())
        assert alone.reasons == ([exact.failures[row]] if row in exact.failures else [])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=12), max_size=20))
def test_any_bytes_give_values_or_reasons(records: list[bytes]) -> None:
    found = decoder(FIELDS).decode(pa.array(records, pa.binary()))
    failed = found.failed.to_pylist() if found.failed is not None else []
    assert sum(failed) == len(found.reasons)
    assert len(found.values) == len(records)


@settings(max_examples=100, deadline=None)
@given(columns())
def test_what_the_encoder_writes_is_read_again(column: pa.Array) -> None:
    from moldau.spark.formats.json.encoder import JsonEncoder

    found = JsonDecoder(column.type, side="value").decode(JsonEncoder("value").encode(column))
    assert found.reasons == []
    assert found.values.to_pylist() == column.to_pylist()
    assert found.values.type == column.type
