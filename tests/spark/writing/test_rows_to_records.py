"""Which columns of a row are the record's value."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import DataType, DoubleType, IntegerType, LongType, StructField, StructType, TimestampType

from moldau.spark.option_values import OptionError
from moldau.spark.options import SinkOptions, sink_options
from moldau.spark.writing.rows_to_records import check_columns, to_records


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def json_sink(**options: str) -> SinkOptions:
    return sink_options(
        {"kafka.bootstrap.servers": "localhost:9092", "valueFormat": "json", **options}, streaming=False
    )


def written(row: dict[str, object], **options: str) -> list[tuple[str, bytes | None]]:
    batch = pa.RecordBatch.from_pylist([row])
    found = to_records(json_sink(**options)).records(batch)
    return [(each.topic, value) for each in found for value in each.values.to_pylist()]


def test_columns_named_like_those_of_a_read_stay_in_the_value() -> None:
    row = {"id": 1, "timestamp": "noon", "topic": "sport", "offset": 7, "timestampType": 0}
    assert written(row, topic="out") == [
        ("out", b'{"id":1,"timestamp":"noon","topic":"sport","offset":7,"timestampType":0}')
    ]
    check_columns(schema(id=IntegerType(), topic=IntegerType()), json_sink(topic="out"))


def test_a_column_that_says_where_a_row_goes_is_not_part_of_it() -> None:
    assert written({"id": 1, "topic": "sport", "partition": 0, "key": b"k"}) == [("sport", b'{"id":1}')]
    with pytest.raises(OptionError, match="column 'topic' is int; allowed is string"):
        check_columns(schema(id=IntegerType(), topic=IntegerType()), json_sink())


def test_columns_that_nothing_would_write_are_refused_beside_a_typed_value() -> None:
    with pytest.raises(OptionError, match="beside it id, which nothing would write"):
        check_columns(schema(id=IntegerType(), value=DoubleType()), json_sink(topic="out"))
    as_read = schema(value=DoubleType(), offset=LongType(), timestamp=TimestampType())
    check_columns(as_read, json_sink(topic="out"))
