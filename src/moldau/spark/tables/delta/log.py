"""What Delta's log says of a file: how many rows it has, between which values, and of which partition it is."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

# Longer texts would have to be cut, the upper bound rounded up: they skip no file worth the trouble.
TEXT_BOUND_CHARS_MAX = 32
# The kinds of columns whose order is the same to every reader.
BOUNDED: tuple[Callable[[pa.DataType], bool], ...] = (
    types.is_signed_integer,
    types.is_floating,
    types.is_decimal,
    types.is_string,
    types.is_large_string,
    types.is_date,
    types.is_timestamp,
)


def statistics_of(metadata: pq.FileMetaData, with_nan: frozenset[str], *, schema: pa.Schema) -> str:
    """The statistics of an added file, as the protocol has them: bounds of plain columns, and counts of nulls."""
    smallest: dict[str, str] = {}
    largest: dict[str, str] = {}
    nulls: dict[str, str] = {}
    for index in range(metadata.num_columns):
        name = metadata.row_group(0).column(index).path_in_schema
        if name not in schema.names or types.is_nested(schema.field(name).type):
            continue
        groups = [metadata.row_group(group).column(index).statistics for group in range(metadata.num_row_groups)]
        if not all(group is not None and group.has_null_count for group in groups):
            continue
        nulls[name] = str(sum(group.null_count for group in groups))
        # A group of nulls alone has no bounds, and says nothing about the others.
        filled = [group for group in groups if group.num_values]
        kind = schema.field(name).type
        if not filled or name in with_nan or not all(group.has_min_max for group in filled) or not _is_bounded(kind):
            continue
        bounds = _bounds(filled, kind)
        if bounds is not None:
            smallest[name], largest[name] = bounds
    parts = {"minValues": smallest, "maxValues": largest, "nullCount": nulls}
    told = [f'"numRecords":{metadata.num_rows}', *(f'"{part}":{_object(values)}' for part, values in parts.items())]
    return "{" + ",".join(told) + "}"


def _bounds(groups: Sequence[pq.Statistics], kind: pa.DataType) -> tuple[str, str] | None:
    """The smallest and the largest value; None where one of them can't be told."""
    try:
        low, high = min(group.min for group in groups), max(group.max for group in groups)
        if _is_told(low) and _is_told(high):
            return _bound(low, kind, upper=False), _bound(high, kind, upper=True)
    except OverflowError:
        pass  # before the year 1 or after 9999, rounded as it has to be: Python has no such moment
    return None


def _is_bounded(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in BOUNDED)


def _is_told(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= TEXT_BOUND_CHARS_MAX
    return not isinstance(value, float) or math.isfinite(value)  # JSON has no number for infinity


def _bound(value: Any, kind: pa.DataType, *, upper: bool) -> str:
    """A value in JSON. Decimals keep all their digits, which no float would."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        return json.dumps(_moment(value, kind, upper=upper))
    if isinstance(value, datetime.date):
        return json.dumps(value.isoformat())
    return json.dumps(value)


def _moment(value: datetime.datetime, kind: pa.DataType, *, upper: bool) -> str:
    """In milliseconds, as the protocol wants it, and outward: a reader that takes a bound at its word misses no row."""
    beyond = value.microsecond % 1000
    if beyond:
        value += datetime.timedelta(microseconds=1000 - beyond if upper else -beyond)
    text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return text if kind.tz is None else f"{text}Z"


def _object(values: dict[str, str]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in values.items()) + "}"


def partition_text(value: Any) -> str | None:
    """A partition's value as the log names it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return "".join(f"\\u{byte:04x}" for byte in value)
    return str(value)
