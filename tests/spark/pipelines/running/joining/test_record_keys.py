from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from moldau.spark.pipelines.running.joining.record_keys import RecordKey, comparable, newest_places


def test_a_later_record_of_a_partition_is_newer_whatever_its_time() -> None:
    records = [RecordKey("t", 0, 0, 9, "a"), RecordKey("t", 0, 1, 1, "a"), RecordKey("t", 0, 2, 0, "b")]
    assert newest_places(records) == {1, 2}
    assert newest_places(reversed(records)) == {0, 1}


def test_between_partitions_time_tells() -> None:
    records = [RecordKey("t", 0, 7, 1, "a"), RecordKey("t", 1, 0, 2, "a"), RecordKey("other", 0, 0, 1, "a")]
    assert newest_places(records) == {1, 2}


def test_a_record_without_a_key_is_nobodys_successor() -> None:
    assert newest_places([RecordKey("t", 0, number, number, None) for number in range(3)]) == {0, 1, 2}


@pytest.mark.parametrize(
    ("kind", "same"),
    [
        (pa.struct([("id", pa.int64()), ("of", pa.struct([("x", pa.string())]))]), {"id": 1, "of": {"x": None}}),
        (pa.struct([]), {}),
        (pa.float64(), float("nan")),
        (pa.list_(pa.int32()), [1, 2]),
        (pa.date32(), date(2026, 1, 1)),
        (pa.binary(), b"k"),
    ],
)
def test_equal_keys_have_one_hash(kind: pa.DataType, same: object) -> None:
    column = pa.chunked_array([pa.array([same, None], kind), pa.array([same], kind)])
    first, none, second = comparable(column)
    assert none is None
    assert first is not None
    assert {first} == {second}


def test_zero_has_no_sign_and_time_has_no_end() -> None:
    assert len(set(comparable(pa.array([0.0, -0.0])))) == 1
    beyond_the_year_9999 = pa.array([4_000_000], pa.date32())
    assert comparable(beyond_the_year_9999) == [4_000_000]
