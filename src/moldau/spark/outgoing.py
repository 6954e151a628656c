"""Rows on their way into topics: which columns say what, checked on the driver, and batches brought into one shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructType

from moldau.spark.columns import HEADERS, spark_headers_type
from moldau.spark.option_values import OptionError
from moldau.spark.options import SinkOptions


@dataclass(frozen=True, slots=True)
class Records:
    """Rows for one topic, and for one partition if they name it; the order of rows is kept within it."""

    topic: str
    partition: int | None
    keys: pa.Array | None
    values: pa.Array
    headers: pa.Array | None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def size_bytes(self) -> int:
        columns = [self.values] if self.keys is None else [self.keys, self.values]
        return sum(pc.sum(pc.binary_length(column)).as_py() or 0 for column in columns)


def check_columns(schema: StructType, options: SinkOptions) -> None:
    """The stock connector's rules about names and types, before anything runs."""
    if "value" not in schema.names:
        raise OptionError(f"the frame has no column 'value'; it has {', '.join(schema.names)}")
    if options.topic is None and "topic" not in schema.names:
        raise OptionError("nothing says which topic to write to: give the option topic, or a column 'topic'")
    allowed = {
        "key": (BinaryType(), StringType()),
        "value": (BinaryType(), StringType()),
        "topic": (StringType(),),
        "partition": (IntegerType(), LongType()),
        HEADERS: (spark_headers_type(),),
    }
    for field in schema.fields:
        if field.name == HEADERS:
            _check_headers(field.dataType.simpleString())
        elif field.name in allowed and field.dataType not in allowed[field.name]:
            names = " or ".join(each.simpleString() for each in allowed[field.name])
            raise OptionError(f"column {field.name!r} is {field.dataType.simpleString()}; allowed is {names}")


def _check_headers(found: str) -> None:
    if found != spark_headers_type().simpleString():
        raise OptionError(f"column {HEADERS!r} is {found}; allowed is {spark_headers_type().simpleString()}")


def records_of(batch: pa.RecordBatch, options: SinkOptions) -> Iterator[Records]:
    """The rows of a batch by topic and partition."""
    for topic, rows in _by_topic(batch, options.topic):
        for partition, some in _by_partition(rows):
            yield Records(
                topic=topic,
                partition=partition,
                keys=_bytes(some, "key"),
                values=_bytes(some, "value"),
                headers=_column(some, HEADERS),
            )


def _by_topic(batch: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The option wins over the column, as it does in the stock connector."""
    if topic is not None:
        yield topic, batch
        return
    column = batch.column("topic")
    if column.null_count:
        raise OptionError("a row has no topic: column 'topic' is null, and there is no option topic")
    for name in column.unique().to_pylist():
        yield name, batch.filter(pc.equal(column, name))


def _by_partition(batch: pa.RecordBatch) -> Iterator[tuple[int | None, pa.RecordBatch]]:
    column = _column(batch, "partition")
    if column is None or column.null_count == len(column):
        yield None, batch
        return
    for partition in column.unique().to_pylist():
        chosen = pc.is_null(column) if partition is None else pc.fill_null(pc.equal(column, partition), False)
        yield partition, batch.filter(chosen)


def _bytes(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    column = _column(batch, name)
    return column if column is None or column.type == pa.binary() else column.cast(pa.binary())


def _column(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    return batch.column(name) if name in batch.schema.names else None
