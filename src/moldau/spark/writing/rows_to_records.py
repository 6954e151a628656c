"""Rows on their way into topics: which columns say what, checked on the driver, and batches brought into one shape."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from moldau.spark.columns import HEADERS, RAW_SCHEMA, spark_headers_type
from moldau.spark.formats import DEFAULT_FORMAT, Encoder, Side, encoder_of
from moldau.spark.formats.interface import HeaderEncoder, SideOptions
from moldau.spark.option_values import OptionError
from moldau.spark.options import SinkOptions
from moldau.spark.record_formats import SIDES, arrow_type_of, format_name
from moldau.spark.registry_names import WRITTEN_ID

# Columns that say something about a record and are no part of a value that is made of all other columns.
DESCRIBING = ("key", HEADERS, "partition")


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

    def taken(self, rows: npt.NDArray[np.int64]) -> Records:
        """Some of them, in that order."""
        indices = pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(np.ascontiguousarray(rows))])
        return Records(
            topic=self.topic,
            partition=self.partition,
            keys=None if self.keys is None else self.keys.take(indices),
            values=self.values.take(indices),
            headers=None if self.headers is None else self.headers.take(indices),
        )

    @property
    def size_bytes(self) -> int:
        columns = [self.values] if self.keys is None else [self.keys, self.values]
        return sum(pc.sum(pc.binary_length(column)).as_py() or 0 for column in columns)


@dataclass(frozen=True)
class RowsToRecords:
    """How rows become records, the same for all tasks of a write."""

    topic: str | None
    encoders: Mapping[str, Encoder]
    chooses_partitions: bool = True
    schemas: Mapping[str, int] = dataclasses.field(default_factory=dict)  # ids of a registry, by side

    def records(self, batch: pa.RecordBatch) -> Iterator[Records]:
        """The rows of a batch by topic and partition."""
        for topic, rows in _by_topic(self._encoded(batch), self.topic):
            for partition, some in _by_partition(rows):
                yield Records(
                    topic=topic,
                    partition=partition,
                    keys=_column(some, "key"),
                    values=some.column("value"),
                    headers=_column(some, HEADERS),
                )

    def _encoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        describing = describing_columns(self.topic)
        columns = {name: batch.column(name) for name in describing if name in batch.schema.names}
        columns["value"] = batch.column("value") if "value" in batch.schema.names else _others(batch, describing)
        for side, encoder in self.encoders.items():
            if side in columns:
                columns[side] = encoder.encode(columns[side])
                if isinstance(encoder, HeaderEncoder) and encoder.header is not None:
                    columns[HEADERS] = _with_header(columns, encoder.header, columns[side])
        return pa.RecordBatch.from_pydict(columns)


def describing_columns(topic: str | None) -> tuple[str, ...]:
    """A column `topic` says where its row goes only where no option says it for all; else it is a column of the row."""
    return DESCRIBING if topic is not None else (*DESCRIBING, "topic")


def to_records(options: SinkOptions) -> RowsToRecords:
    formats = options.formats
    return RowsToRecords(
        topic=options.topic,
        encoders={side: encoder_of(format_name(formats, side), formats, side=side) for side in SIDES},
        chooses_partitions="partitioner" not in dict(options.client),
        schemas={side: int(told) for side in SIDES if (told := SideOptions(side, formats).get(WRITTEN_ID))},
    )


def check_columns(schema: StructType, options: SinkOptions) -> None:
    """Names and types, before anything runs."""
    if options.topic is None and "topic" not in schema.names:
        raise OptionError("nothing says which topic to write to: give the option topic, or a column 'topic'")
    _check_value(schema, options)
    encoders = to_records(options).encoders
    for side, kind in written_types(schema, options).items():
        encoders[side].check(kind)
    allowed = {"topic": (StringType(),), "partition": (IntegerType(), LongType())}
    for field in schema.fields:
        is_used = field.name in describing_columns(options.topic)
        if is_used and field.name in allowed and field.dataType not in allowed[field.name]:
            raise OptionError(
                f"column {field.name!r} is {field.dataType.simpleString()}; "
                f"allowed is {allowed[field.name][0].simpleString()}"
            )
    headers = spark_headers_type().simpleString()
    if HEADERS in schema.names and schema[HEADERS].dataType.simpleString() != headers:
        raise OptionError(f"column {HEADERS!r} is {schema[HEADERS].dataType.simpleString()}; allowed is {headers}")


def written_types(schema: StructType, options: SinkOptions) -> dict[Side, pa.DataType]:
    """The types that key and value have when they are encoded."""
    types: dict[Side, pa.DataType] = {
        side: arrow_type_of(schema[side].dataType, column=side) for side in SIDES if side in schema.names
    }
    if "value" not in types:
        members = [schema[name] for name in _named(schema, options)]
        kinds = [(each, arrow_type_of(each.dataType, column=each.name)) for each in members]
        types["value"] = pa.struct([pa.field(each.name, kind, nullable=each.nullable) for each, kind in kinds])
    return types


def _check_value(schema: StructType, options: SinkOptions) -> None:
    is_plain = format_name(options.formats, "value").lower() in (DEFAULT_FORMAT, "string")
    if "value" in schema.names:
        # Frames that are read from topics have such columns beside the value, and the stock connector drops them.
        unwritten = [name for name in _named(schema, options) if name not in RAW_SCHEMA.names]
        if unwritten and not is_plain:
            raise OptionError(
                f"the frame has a column 'value', which is the record's, and beside it {', '.join(unwritten)}, which "
                "nothing would write: make one struct of them and name it value"
            )
        return
    if is_plain or not _named(schema, options):
        raise OptionError(
            f"the frame has no column 'value', only {', '.join(schema.names)}; "
            "with valueFormat = json or avro all columns together are the value"
        )


def _named(schema: StructType, options: SinkOptions) -> list[str]:
    return [name for name in schema.names if name not in describing_columns(options.topic)]


def _others(batch: pa.RecordBatch, describing: Collection[str]) -> pa.StructArray:
    names = [name for name in batch.schema.names if name not in describing]
    return pa.StructArray.from_arrays([batch.column(name) for name in names], names=names)


def _with_header(columns: Mapping[str, pa.Array], header: tuple[str, bytes], payloads: pa.Array) -> pa.Array:
    from moldau.spark.formats.registry.headers import with_header

    return with_header(columns.get(HEADERS), *header, payloads)


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


def _column(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    return batch.column(name) if name in batch.schema.names else None
