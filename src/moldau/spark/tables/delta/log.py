"""What Delta's log says of a staged file: how many rows it has, and between which values."""

from __future__ import annotations

import datetime
import json

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

# Longer texts would have to be cut, the upper bound rounded up: they skip no file worth the trouble.
TEXT_BOUND_CHARS_MAX = 32

Bound = int | str


def statistics_of(metadata: pq.FileMetaData, schema: pa.Schema) -> str:
    """Bounds of plain columns whose order is the same everywhere: whole numbers, dates, short texts."""
    smallest: dict[str, Bound] = {}
    largest: dict[str, Bound] = {}
    nulls: dict[str, int] = {}
    for index in range(metadata.num_columns):
        name = metadata.row_group(0).column(index).path_in_schema
        if name not in schema.names or not _is_bounded(schema.field(name).type):
            continue
        groups = [metadata.row_group(group).column(index).statistics for group in range(metadata.num_row_groups)]
        if not all(group is not None and group.has_null_count for group in groups):
            continue
        nulls[name] = sum(group.null_count for group in groups)
        bounds = [(_bound(group.min), _bound(group.max)) for group in groups if group.has_min_max]
        # A group of nulls alone has no bounds, and says nothing about the others.
        filled = [group for group in groups if group.num_values]
        if filled and len(bounds) == len(filled) and all(_is_short(bound) for pair in bounds for bound in pair):
            smallest[name], largest[name] = min(low for low, _ in bounds), max(high for _, high in bounds)
    known = {"numRecords": metadata.num_rows, "minValues": smallest, "maxValues": largest, "nullCount": nulls}
    return json.dumps(known)


def _is_bounded(kind: pa.DataType) -> bool:
    return bool(types.is_signed_integer(kind) or types.is_string(kind) or types.is_date(kind))


def _bound(value: int | str | datetime.date) -> Bound:
    return value.isoformat() if isinstance(value, datetime.date) else value


def _is_short(bound: Bound) -> bool:
    return isinstance(bound, int) or len(bound) <= TEXT_BOUND_CHARS_MAX
