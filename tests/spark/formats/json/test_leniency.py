"""Runs that Arrow's reader refuses as they are, read at once all the same, and never otherwise than one by one."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.spark.formats import decoder_of
from moldau.spark.formats.json import decoder as json_decoder
from moldau.spark.formats.json.decoder import JsonDecoder, _Run


def decoder(schema: str) -> JsonDecoder:
    made = decoder_of("json", {"valueSchema": schema}, side="value")
    assert isinstance(made, JsonDecoder)
    return made


def both_ways(schema: str, records: list[str]) -> tuple[_Run, _Run]:
    texts = pa.array([record.encode() for record in records], pa.binary())
    quick, exact = _Run(decoder(schema)), _Run(decoder(schema))
    quick.read(texts, first_row=0)
    exact.read_one_by_one(texts, first_row=0)
    return quick, exact


def rows(run: _Run) -> list[Any]:
    return [row for piece in run.pieces for row in piece.to_pylist()]


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ("v TIMESTAMP", ['"2026-01-31T12:00:00.123456789Z"', '"2026-01-31T12Z"', '"1969-12-31T23:59:59.1234567Z"']),
        ("v TIMESTAMP", ['"2026-01-31 12:00:00.123456789"', '"2026-01-31"', '"2026-01-31T12:00:00.1234567+02:30"']),
        ("v TIMESTAMP_NTZ", ['"2026-01-31T12:00:00.123456789"', '"2026-01-31T12:00:00.1"', "null"]),
        ("v ARRAY<TIMESTAMP>", ['["2026-01-31T12:00:00.123456789Z",null]', "null", "[]"]),
        ("v STRING", ["1.10", '"text"', "-0.0E+05", "true", "null", "123456789012345678901234567890"]),
        ("v STRUCT<s: STRING, at: TIMESTAMP>", ['{"s":5,"at":"2026-01-31T12:00:00.123456789Z"}', '{"s":"x"}', "null"]),
        ("v ARRAY<STRUCT<s: STRING>>", ['[{"s":5},{"s" :\\t6.50},{}]', "[]"]),
    ],
)  # fmt: skip
def test_a_run_is_read_at_once(schema: str, values: list[str]) -> None:
    quick, exact = both_ways(schema, [f'{{"v":{value.replace(chr(92) + "t", chr(9))}}}' for value in values] * 30)
    assert len(quick.pieces) == 1
    assert quick.failures == exact.failures == {}
    assert rows(quick) == rows(exact)


@pytest.mark.parametrize(
    "record",
    [
        '{"note":"\\"s\\":5","s":1}',
        '{"x\\"s":5,"s":"a"}',
        '{"\\u0073":5}',
        '{"s":{"s":5}}',
        '{"o":{"s":5,"t":"x"},"s":7}',
        '{"t":5,"s":"\\\\","s":6}',
        '{"s":[5]}',
        '{"s":5.}',
        '{"s":01}',
        '{"s":5"x":6}',
        '{"s":truest}',
    ],
)
def test_only_values_of_text_members_are_taken_for_text(record: str) -> None:
    """`s` is text, `t` is text in one place and a number in another, `o` is not in the schema."""
    for schema in ("s STRING", "s STRING, t BIGINT, n STRUCT<s: STRING>", "s STRING, n STRUCT<s: BIGINT>, t STRING"):
        quick, exact = both_ways(schema, [record, '{"s":5}'] * 20)
        assert rows(quick) == rows(exact)
        assert quick.failures == exact.failures


PIECES = st.sampled_from(['"s":5', '\\"s":5', "\\", '"', "s", ",", "{", "}", ":", "5", "é", "\n", " "])
TEXTS = st.lists(PIECES, max_size=5).map("".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-50, 50) | st.floats(-5, 5) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["s", "t", '"s', 's"']), inner, max_size=2)
    ),
    max_leaves=4,
)
RECORDS = st.dictionaries(st.sampled_from(["s", "t", "n", "m", '"s', 's"', "\\"]), VALUES, max_size=3)


@settings(max_examples=100, deadline=None)
@given(st.lists(RECORDS, min_size=3, max_size=8), st.booleans(), st.booleans())
def test_any_objects_are_read_as_one_by_one(records: list[dict[str, Any]], escapes: bool, spaced: bool) -> None:
    separators = (" ,\t", " : ") if spaced else (",", ":")
    texts = [json.dumps(record, ensure_ascii=escapes, separators=separators) for record in records]
    schema = "s STRING, t BIGINT, n STRUCT<s: STRING, t: BIGINT>, m ARRAY<STRUCT<s: STRING>>"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_decoder, "ONE_BY_ONE_ROWS_MAX", 2)  # else a test's runs are too short to be cut
        quick, exact = both_ways(schema, texts)
    assert repr(rows(quick)) == repr(rows(exact))
    assert quick.failures == exact.failures
