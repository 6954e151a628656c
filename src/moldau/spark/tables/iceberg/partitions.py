"""Iceberg's partitions: columns, or what a transform makes of them, such as the day of a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import types

from moldau.spark.option_values import wrong_option
from moldau.spark.tables.data_files import Partition, split_by

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

HOUR_US = 3_600_000_000
# As Spark's DDL writes them, and as Iceberg names them.
TRANSFORMS = {
    **{f"{unit}s": unit for unit in ("year", "month", "day", "hour")},
    **{unit: unit for unit in ("year", "month", "day", "hour")},
    "bucket": "bucket",
    "truncate": "truncate",
}
TERM = re.compile(r"\s*(\w+)\s*\(\s*(?:(\d+)\s*,\s*)?([^,()]+?)\s*(?:,\s*(\d+)\s*)?\)\s*")
ALLOWED = "allowed are columns, and years, months, days or hours(COLUMN), bucket(N, COLUMN), truncate(N, COLUMN)"


@dataclass(frozen=True, slots=True)
class TransformedPartitions:
    """The partitions of a spec."""

    spec: PartitionSpec
    schema: Schema

    def split(self, rows: pa.Table) -> Iterator[tuple[Partition, pa.Table]]:
        return split_by(rows, [self._values(rows, field) for field in self.spec.fields])

    def folder(self, partition: Partition) -> str:
        """For people to look at: what counts is in the manifest, so that unusual characters need no care."""
        from pyiceberg.typedef import Record

        return self.spec.partition_to_path(Record(*partition), self.schema).replace("%", "_").replace("+", "_")

    def _values(self, rows: pa.Table, field: PartitionField) -> pa.ChunkedArray:
        """As manifests have them: numbers for dates and times. Each value is computed once for all its rows."""
        source = self.schema.find_field(field.source_id)
        column = _column(rows, str(self.schema.find_column_name(field.source_id)))
        encoded = _numbers(column, str(field.transform)).combine_chunks().dictionary_encode()
        transform = field.transform.transform(source.field_type)
        values = [transform(value) for value in encoded.dictionary.to_pylist()]
        results = pa.array(values) if values else pa.nulls(0)
        return pa.chunked_array([results.take(encoded.indices)])


def _column(rows: pa.Table, name: str) -> pa.ChunkedArray:
    """A field of a struct is named with its struct."""
    first, *inner = name.split(".") if name not in rows.column_names else [name]
    column = rows[first]
    for part in inner:
        column = pa.chunked_array([chunk.field(part) for chunk in column.chunks])
    return column


def _numbers(column: pa.ChunkedArray, transform: str) -> pa.ChunkedArray:
    kind = column.type
    if types.is_date(kind):
        return column.cast(pa.date32()).cast(pa.int32())
    if types.is_time(kind):
        return column.cast(pa.time64("us")).cast(pa.int64())
    if not types.is_timestamp(kind):
        return column
    micros = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    if transform not in TRANSFORMS:
        return micros
    # Years, months and days are those of the hour, and there are fewer hours than moments.
    counted = micros.to_numpy() if not micros.null_count else None
    if counted is None:
        return micros
    return pa.chunked_array([pa.array(np.floor_divide(counted, HOUR_US) * HOUR_US)])


def partition_terms(text: str) -> list[tuple[str, str]]:
    """Pairs of a column and a transform, from `region, days(at), bucket(16, id)`."""
    return [_term(part, text) for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _term(part: str, text: str) -> tuple[str, str]:
    if "(" not in part:
        return part.strip(), "identity"
    matched = TERM.fullmatch(part)
    transform = TRANSFORMS.get(matched[1].lower()) if matched is not None else None
    if matched is None or transform is None:
        raise wrong_option("partitionBy", text, ALLOWED)
    number = matched[2] or matched[4]
    if (number is not None) != (transform in ("bucket", "truncate")):
        raise wrong_option("partitionBy", text, ALLOWED)
    return matched[3], transform if number is None else f"{transform}[{number}]"


def terms_of(table: Table) -> list[tuple[str, str]]:
    schema = table.schema()
    return [(str(schema.find_column_name(field.source_id)), str(field.transform)) for field in table.spec().fields]


def partition_table(table: Table, terms: list[tuple[str, str]], text: str) -> None:
    """Before the table has rows."""
    with table.update_spec() as update:
        for column, transform in terms:
            if column not in table.schema().column_names:
                names = ", ".join(field.name for field in table.schema().fields)
                raise wrong_option("partitionBy", text, f"{ALLOWED}; the columns are {names}")
            update.add_field(column, transform)
