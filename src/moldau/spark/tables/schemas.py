"""Does a frame fit a table? Answered before a row is written, in words; and the small changes that make it fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types

from moldau.spark.option_values import OptionError
from moldau.spark.tables.options import WriteOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class SchemaMismatch(ValueError):
    """A frame that the table can't take."""


def arrow_schema(schema: StructType) -> pa.Schema:
    """All columns may be null: Spark's flags say what one plan proved, and the next one may prove less."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return pa.schema([field.with_nullable(True) for field in to_arrow_schema(schema, timezone="UTC")])


def check_columns(frame: pa.Schema, options: WriteOptions) -> None:
    """Columns that options name are in the frame."""
    named = {"keys": options.keys, "orderBy": (options.order_by,), "operationColumn": (options.operation_column,)}
    for option, columns in named.items():
        for column in columns:
            if column is not None and column not in frame.names:
                raise OptionError(f"option {option}: the frame has no column {column!r}; it has {_listed(frame)}")
    if options.operation_column in options.keys:
        raise OptionError(f"option operationColumn={options.operation_column!r} is one of the keys")


def table_part(frame: pa.Schema, options: WriteOptions) -> pa.Schema:
    """What of the frame is stored: the operation says what becomes of a row and is no part of it."""
    return pa.schema([field for field in frame if field.name != options.operation_column])


@dataclass(frozen=True, slots=True)
class Evolution:
    """What a table needs to take a frame: columns that it lacks, and columns with a type that holds more."""

    added: tuple[pa.Field, ...] = ()
    widened: tuple[pa.Field, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.widened)


def evolution(frame: pa.Schema, table: pa.Schema) -> Evolution:
    """A column is widened if its new type holds every value that it has; whatever else doesn't fit stays as it is."""
    shared = [field for field in frame if field.name in table.names]
    wider = [field for field in shared if not holds(table.field(field.name).type, field.type)]
    return Evolution(
        added=tuple(field for field in frame if field.name not in table.names),
        widened=tuple(field for field in wider if holds(field.type, table.field(field.name).type)),
    )


def evolved(table: pa.Schema, needed: Evolution) -> pa.Schema:
    widened = {field.name: field for field in needed.widened}
    kept = [widened[field.name].with_nullable(field.nullable) if field.name in widened else field for field in table]
    return pa.schema([*kept, *needed.added])


def check_fits(frame: pa.Schema, table: pa.Schema, *, name: str) -> None:
    """Every column of the frame has a place in the table that holds all of its values."""
    problems = [f"the table has no column {field.name!r}" for field in frame if field.name not in table.names]
    problems += [
        f"column {field.name!r} is {field.type} in the frame and {table.field(field.name).type} in the table"
        for field in frame
        if field.name in table.names and not holds(table.field(field.name).type, field.type)
    ]
    problems += [
        f"the frame lacks column {field.name!r}, which may not be null"
        for field in table
        if not field.nullable and field.name not in frame.names
    ]
    if problems:
        hint = "" if not evolution(frame, table) else ". With mergeSchema=true columns are added and types widened"
        raise SchemaMismatch(f"the frame doesn't fit table {name}: {'; '.join(problems)}{hint}")


def holds(wide: pa.DataType, narrow: pa.DataType) -> bool:
    """Whether every value of one type is also one of the other."""
    if wide == narrow:
        return True
    for same_kind, judge in _KINDS:
        if same_kind(wide) and same_kind(narrow):
            return judge(wide, narrow)
    return False


def _is_text(kind: pa.DataType) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(types.is_binary(kind) or types.is_large_binary(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind))


def _decimal_holds(wide: pa.DataType, narrow: pa.DataType) -> bool:
    return bool(wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale)


def _struct_holds(wide: pa.DataType, narrow: pa.DataType) -> bool:
    names = [narrow.field(index).name for index in range(narrow.num_fields)]
    if names != [wide.field(index).name for index in range(wide.num_fields)]:
        return False
    return all(holds(wide.field(name).type, narrow.field(name).type) for name in names)


_KINDS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, pa.DataType], bool]], ...] = (
    (types.is_signed_integer, lambda wide, narrow: bool(wide.bit_width >= narrow.bit_width)),
    (types.is_floating, lambda wide, narrow: bool(wide.bit_width >= narrow.bit_width)),
    (_is_text, lambda _wide, _narrow: True),
    (_is_bytes, lambda _wide, _narrow: True),
    (types.is_timestamp, lambda wide, narrow: (wide.tz is None) == (narrow.tz is None)),
    (types.is_decimal, _decimal_holds),
    (_is_list, lambda wide, narrow: holds(wide.value_type, narrow.value_type)),
    (
        types.is_map,
        lambda wide, narrow: holds(wide.key_type, narrow.key_type) and holds(wide.item_type, narrow.item_type),
    ),
    (types.is_struct, _struct_holds),
)


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in the table's order and types; what the frame lacks is null."""
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _listed(schema: pa.Schema) -> str:
    return ", ".join(repr(name) for name in schema.names)
