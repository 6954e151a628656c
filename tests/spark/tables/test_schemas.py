"""Which column takes which values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from moldau.spark.tables.schemas import SchemaMismatch, check_fits, conform, holds

MICROSECONDS = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        (pa.int64(), pa.int32(), True),
        (pa.int32(), pa.int64(), False),
        (pa.float64(), pa.float32(), True),
        (pa.float64(), pa.int32(), False),
        (pa.large_string(), pa.string(), True),
        (pa.string(), pa.binary(), False),
        (pa.decimal128(12, 2), pa.decimal128(10, 2), True),
        (pa.decimal128(12, 4), pa.decimal128(11, 2), False),
        (MICROSECONDS, pa.timestamp("us", "Europe/Prague"), True),
        (MICROSECONDS, pa.timestamp("us"), False),
        (pa.list_(pa.int64()), pa.list_(pa.int32()), True),
        (pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.string()), False),
        (pa.struct([("a", pa.int64())]), pa.struct([("a", pa.int32())]), True),
        (pa.struct([("a", pa.int64())]), pa.struct([("b", pa.int64())]), False),
    ],
)
def test_a_type_holds_all_values_of_another_or_not(wide: pa.DataType, narrow: pa.DataType, expected: bool) -> None:
    assert holds(wide, narrow) is expected


def test_all_that_does_not_fit_is_said_at_once() -> None:
    table = pa.schema([pa.field("id", pa.int32()), pa.field("shop", pa.string(), nullable=False)])
    with pytest.raises(SchemaMismatch) as problem:
        check_fits(pa.schema([("id", pa.int64()), ("price", pa.float64())]), table, name="orders")
    assert str(problem.value) == (
        "the frame doesn't fit table orders: the table has no column 'price';"
        " column 'id' is int64 in the frame and int32 in the table;"
        " the frame lacks column 'shop', which may not be null."
        " With mergeSchema=true columns are added and types widened"
    )


def test_a_batch_takes_the_order_and_types_of_the_table() -> None:
    rows = pa.record_batch({"b": pa.array([1], pa.int32()), "a": ["x"]})
    table = pa.schema([("a", pa.large_string()), ("b", pa.int64()), ("c", pa.list_(pa.int64()))])
    assert conform(rows, table).to_pylist() == [{"a": "x", "b": 1, "c": None}]
