"""The rows of a table at a pin: all of them by Spark, or those of a few keys, found here and handed to Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from moldau.spark.pipelines.plan import Source
from moldau.spark.pipelines.running.frames.sources import (
    RECORD_COLUMNS,
    TOMBSTONE,
    are_keyed_by_bytes,
    identity,
    newest_records,
    newest_rows,
    unpacked,
)
from moldau.spark.pipelines.running.joining.keys import Lookup
from moldau.spark.pipelines.running.joining.record_keys import are_bytes, newest_places, record_keys
from moldau.spark.pipelines.running.joining.snapshot_files import SnapshotFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

IDENTITY = ("topic", "partition", "key")
PLACE = "_place"


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """What a batch sees of a table."""

    source: Source
    snapshot_url: str
    snapshot: DataFrame
    files: SnapshotFiles | None  # the snapshot's, where they can be read here
    changes: pa.Table | None
    schema: StructType

    def rows(self, spark: SparkSession, lookup: Lookup | None = None) -> DataFrame:
        from pyspark.sql import functions as f

        if lookup is not None and lookup.values is not None and self._are_plain_rows():
            return spark.createDataFrame(self._few_rows(lookup), without_tombstone(self.snapshot.schema))
        kept = self.snapshot if lookup is None else lookup.rows_of(self.snapshot)
        if self.changes is None:
            return newest_rows(kept, self.source)
        changed = changed_records(spark, self.changes, self.schema, self.source)
        if not are_keyed_by_bytes(changed, self.source):
            found = newest_rows(newest_records(kept.unionByName(changed), self.source), self.source)
            return found if lookup is None else lookup.rows_of(found)
        replaced = changed.select(identity(self.source).alias("_replaced"))
        kept = kept.join(f.broadcast(replaced), identity(self.source) == f.col("_replaced"), "left_anti")
        changed = changed if lookup is None else lookup.rows_of(changed)
        return newest_rows(kept.unionByName(changed, allowMissingColumns=True), self.source)

    def _are_plain_rows(self) -> bool:
        """Records as they come, in the shape that they had when the snapshot was made, with keys to compare here."""
        schema = without_tombstone(self.snapshot.schema)
        if self.source.are_changes or schema.names != list(_columns_of(self.schema.names, _fields(self.schema))):
            return False
        return all(_is_compared_alike(schema[key].dataType) for key in self.source.keys)

    def _few_rows(self, lookup: Lookup) -> pa.Table:
        """The rows of a few keys, with no shuffle and no broadcast; where it can be, with no job at all."""
        rows = None if self.files is None else self.files.rows(lookup)
        if rows is None:
            rows = lookup.rows_of(self.snapshot).drop(TOMBSTONE).toArrow()
        if self.changes is not None:
            kept, changes = _without_replaced(rows, self.changes)
            fresh = lookup.found_in(_unpacked(changes.filter(changes["value"].is_valid())))
            rows = pa.concat_tables([kept, fresh.cast(rows.schema)])
        return _newest(rows, self.source.keys)


def changed_records(spark: SparkSession, changes: pa.Table, schema: StructType, source: Source) -> DataFrame:
    """Each record's newest state; of plain records only those are kept, change events are compared as rows."""
    # Arrow takes a member of a struct that is null for null itself, and casts it to nothing that may not be.
    records = unpacked(spark.createDataFrame(changes, schema.toNullable()), source)
    return newest_records(records, source) if source.are_changes else records


def without_tombstone(schema: StructType) -> StructType:
    from pyspark.sql.types import StructType

    return StructType([field for field in schema if field.name != TOMBSTONE])


def _fields(schema: StructType) -> list[str] | None:
    """Of a typed value; any other is one column."""
    from pyspark.sql.types import StructType

    value = schema["value"].dataType
    return value.names if isinstance(value, StructType) else None


def _columns_of(names: Sequence[str], fields: Sequence[str] | None) -> dict[str, tuple[str, ...]]:
    """The columns of a table's row, each with where a record has it; `unpacked` is the same for Spark."""
    values: dict[str, tuple[str, ...]] = {field: ("value", field) for field in fields or ()}
    return (values or {"value": ("value",)}) | {
        alias: (name,) for name, alias in RECORD_COLUMNS.items() if name in names
    }


def _unpacked(records: pa.Table) -> pa.Table:
    kind = records.schema.field("value").type
    fields = [field.name for field in kind] if pa.types.is_struct(kind) else None
    columns = _columns_of(records.column_names, fields)
    return pa.table(
        {
            column: records[place[0]] if len(place) == 1 else pc.struct_field(records[place[0]], place[1])
            for column, place in columns.items()
        }
    )


def _without_replaced(rows: pa.Table, changes: pa.Table) -> tuple[pa.Table, pa.Table]:
    """A later record of its key replaces a row, whatever is in it; one without a key is nobody's successor."""
    if not are_bytes(changes.schema.field("key").type):
        return _newest_of_keys(rows, changes)
    named = pa.table({name: rows[RECORD_COLUMNS[name]] for name in IDENTITY})
    later = changes.select(IDENTITY).cast(named.schema)
    places = pa.array(range(rows.num_rows), pa.int64())  # without a type, no rows are of type null, which no join takes
    stays = named.append_column(PLACE, places).join(later, IDENTITY, join_type="left anti")
    return rows.take(stays[PLACE].sort()), changes


def _newest_of_keys(rows: pa.Table, changes: pa.Table) -> tuple[pa.Table, pa.Table]:
    """What of both stays: in another partition a later change may be of an older record."""
    newest = newest_places([*record_keys(rows, prefix="_"), *record_keys(changes)])
    stays = pa.array([place in newest for place in range(rows.num_rows + changes.num_rows)], pa.bool_())
    return rows.filter(stays.slice(0, rows.num_rows)), changes.filter(stays.slice(rows.num_rows))


def _is_compared_alike(kind: DataType) -> bool:
    """Whether Python takes two values for one key where Spark does: not so with NaN, and not with nested values."""
    from pyspark.sql import types as t

    plain = (
        t.BinaryType,
        t.BooleanType,
        t.IntegralType,
        t.DecimalType,
        t.DateType,
        t.TimestampType,
        t.TimestampNTZType,
    )
    return isinstance(kind, plain) or kind == t.StringType()  # a collation says for itself what is equal


def _newest(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Of each key: records of different keys, or of different partitions, may be about the same row."""
    newest: dict[tuple[Any, ...], tuple[Any, int]] = {}
    named = zip(*(_values(rows[key]) for key in keys), strict=True)
    ages = zip(_values(rows["_timestamp"]), _values(rows["_offset"]), strict=True)
    for place, (key, age) in enumerate(zip(named, ages, strict=True)):
        if key not in newest or age > newest[key][0]:
            newest[key] = (age, place)
    return rows.take(pa.array(sorted(place for _, place in newest.values()), pa.int64()))


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Dates and times as numbers: Python has none beyond the year 9999."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    values: list[Any] = column.to_pylist()
    return values
