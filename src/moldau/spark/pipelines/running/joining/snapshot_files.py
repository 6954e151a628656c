"""The rows of a few keys from a snapshot's files, read here where they are on this machine: without a job of Spark.

A snapshot is sorted by its key and lies in small row groups. Parquet knows the least and the most key of each, so few
of them have to be read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from moldau.spark.pipelines.running.joining.keys import Lookup

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

# Small enough that a key takes a millisecond or two, large enough that Spark reads all of a table as fast as ever.
ROW_GROUP_BYTES = 1 << 18
# What is read here at once. Spark reads more than that faster: it takes pages of a group, on all of its cores.
READ_BYTES_MAX = 32 << 20
# Beyond that, what the driver keeps of footers would be hundreds of megabytes.
ROW_GROUPS_MAX = 4_000
# Spark's mark of files whose dates count by another calendar.
LEGACY = b"org.apache.spark.legacy"


@dataclass(frozen=True, slots=True)
class RowGroup:
    """`bounds` are the least and the most of each column of the key; None where the file does not say."""

    file: int
    number: int
    size_bytes: int
    bounds: dict[str, tuple[Any, Any] | None]

    def may_have(self, column: str, asked: Sequence[Any]) -> bool:
        """`asked` is in order."""
        bounds = self.bounds[column]
        if bounds is None:
            return True
        least, most = bounds
        place = bisect_left(asked, least)
        return place < len(asked) and bool(asked[place] <= most)


@dataclass(frozen=True, slots=True)
class SnapshotFiles:
    """What is known of a snapshot's files without their rows; as long as the snapshot is there."""

    paths: tuple[Path, ...]
    footers: tuple[pq.FileMetaData, ...]
    groups: tuple[RowGroup, ...]
    schema: pa.Schema  # as Spark takes its rows from Arrow

    def rows(self, lookup: Lookup) -> pa.Table | None:
        """None where too much would have to be read."""
        assert lookup.values is not None, "too many keys are looked for by Spark"
        groups = list(self._with(lookup.columns, lookup.values))
        if sum(group.size_bytes for group in groups) > READ_BYTES_MAX:
            return None
        files = sorted({group.file for group in groups})
        found = [self._read(file, [group.number for group in groups if group.file == file]) for file in files]
        return lookup.found_in(pa.concat_tables([self.schema.empty_table(), *found]))

    def _with(self, columns: Sequence[str], keys: Sequence[Sequence[Any]]) -> Iterator[RowGroup]:
        asked = {column: sorted({key[place] for key in keys}) for place, column in enumerate(columns)}
        return (group for group in self.groups if all(group.may_have(name, each) for name, each in asked.items()))

    def _read(self, file: int, groups: list[int]) -> pa.Table:
        # Spark writes times with nanoseconds, which do not reach as far as its own.
        opened = pq.ParquetFile(self.paths[file], metadata=self.footers[file], coerce_int96_timestamp_unit="us")
        with opened:
            return opened.read_row_groups(groups).select(self.schema.names).cast(self.schema)


def snapshot_files(folder: Path, schema: StructType, keys: Sequence[str]) -> SnapshotFiles | None:
    """None where only Spark knows what the files mean."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if not all(is_read_alike(field.dataType) for field in schema):
        return None
    paths = tuple(sorted(folder.glob("*.parquet")))
    footers = tuple(pq.read_metadata(path) for path in paths)
    if sum(footer.num_row_groups for footer in footers) > ROW_GROUPS_MAX:
        return None
    if any(name.startswith(LEGACY) for footer in footers for name in footer.metadata or ()):
        return None
    groups = (group for file, footer in enumerate(footers) for group in _groups_of(file, footer, keys))
    return SnapshotFiles(paths, footers, tuple(groups), to_arrow_schema(schema, timezone="UTC"))


def is_read_alike(kind: DataType) -> bool:
    """Whether Arrow reads from Parquet what Spark wrote, whatever is set."""
    from pyspark.sql import types as t

    if isinstance(kind, t.ArrayType):
        return is_read_alike(kind.elementType)
    if isinstance(kind, t.MapType):
        return is_read_alike(kind.keyType) and is_read_alike(kind.valueType)
    if isinstance(kind, t.StructType):
        return all(is_read_alike(field.dataType) for field in kind)
    plain = (t.StringType, t.BinaryType, t.BooleanType, t.NumericType, t.DateType, t.TimestampType, t.TimestampNTZType)
    return isinstance(kind, plain)


def _groups_of(file: int, footer: pq.FileMetaData, keys: Sequence[str]) -> Iterator[RowGroup]:
    columns = [footer.schema.column(number) for number in range(footer.num_columns)]
    places = {column.name: number for number, column in enumerate(columns) if column.name == column.path}
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        bounds = {key: _bounds(group.column(places[key]).statistics) if key in places else None for key in keys}
        yield RowGroup(file, number, group.total_byte_size, bounds)


def _bounds(known: Any) -> tuple[Any, Any] | None:
    try:
        return (known.min, known.max) if known is not None and known.has_min_max else None
    except (ValueError, OverflowError):
        return None  # a time or a text that Spark takes and Python does not
