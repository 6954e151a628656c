"""Tables of PostgreSQL and SQLite as rows, in one task: one statement sees one state."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa

from moldau.spark.option_values import OptionError
from moldau.spark.tables.databases.engines import Database, Sqlite, complaint_of
from moldau.spark.tables.databases.statements import text_literal
from moldau.spark.tables.databases.table_names import TableName, quoted
from moldau.spark.tables.reading import Part

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Cursor

ROWS_PER_BATCH = 10_000
DECIMAL_DIGITS_MAX = 38
NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")
# SQLite keeps whatever it is given; a column's declared type says what is meant, by the words that it contains.
SQLITE_TYPES: tuple[tuple[str, pa.DataType], ...] = (
    ("bool", pa.bool_()),
    ("int", pa.int64()),
    ("date", pa.string()),
    ("time", pa.string()),
    ("char", pa.string()),
    ("clob", pa.string()),
    ("text", pa.string()),
    ("blob", pa.binary()),
    ("real", pa.float64()),
    ("floa", pa.float64()),
    ("doub", pa.float64()),
    ("numeric", pa.float64()),
    ("decimal", pa.float64()),
)


@dataclass(frozen=True, slots=True)
class ReadableDatabase:
    database: Database
    table: TableName

    def columns(self) -> pa.Schema:
        if isinstance(self.database, Sqlite):
            return self._sqlite_columns(self.database)
        from adbc_driver_manager import Error

        try:
            with self.database.connect() as connection, connection.cursor() as cursor:
                return pa.schema([(column.name, column.kind) for column in postgresql_columns(cursor, self.table)])
        except Error as wrong:
            raise OptionError(f"option dbtable: {self.table} can't be read: {complaint_of(wrong)}") from None

    def state(self) -> tuple[str, int]:
        return "", 1

    def batches(self, part: Part) -> Iterator[pa.RecordBatch]:
        del part
        if isinstance(self.database, Sqlite):
            yield from self._sqlite_batches(self.database)
            return
        with self.database.connect() as connection, connection.cursor() as cursor:
            selected = ", ".join(column.selected for column in postgresql_columns(cursor, self.table))
            cursor.execute(f"select {selected} from {self.table}")
            yield from cursor.fetch_record_batch()

    def _sqlite_columns(self, database: Sqlite) -> pa.Schema:
        schema = "" if self.table.schema is None else f", {text_literal(self.table.schema)}"
        with _opened(database) as connection:
            told = connection.execute(
                f"select name, type from pragma_table_info({text_literal(self.table.name)}{schema})"
            ).fetchall()
        if not told:
            raise OptionError(f"option dbtable: there is no table {self.table.name} in {database.path}")
        return pa.schema([pa.field(name, _sqlite_type(declared)) for name, declared in told])

    def _sqlite_batches(self, database: Sqlite) -> Iterator[pa.RecordBatch]:
        schema = self._sqlite_columns(database)
        names = ", ".join(quoted(name) for name in schema.names)
        with _opened(database) as connection:
            cursor = connection.execute(f"select {names} from {self.table}")
            while rows := cursor.fetchmany(ROWS_PER_BATCH):
                columns = zip(*rows, strict=True)
                arrays = [_array(column, kept.type) for column, kept in zip(columns, schema, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of PostgreSQL, and how it is asked for."""

    name: str
    kind: pa.DataType
    selected: str


def postgresql_columns(cursor: Cursor, table: TableName) -> list[_Column]:
    """What Spark has no type for comes as the text that the database makes of it: a uuid, an address, a document."""
    cursor.execute(f"select * from {table} limit 0")
    found = cursor.fetch_arrow_table().schema
    cursor.execute(
        "select attname, format_type(atttypid, atttypmod) from pg_attribute where attnum > 0 and not attisdropped"
        f" and attrelid = to_regclass({text_literal(str(table))})"
    )
    declared = dict(cursor.fetchall())
    return [_column(field, declared.get(field.name, "")) for field in found]


def _column(field: pa.Field, declared: str) -> _Column:
    name = quoted(field.name)
    if _is_known_to_spark(field.type):
        return _Column(field.name, field.type, name)
    return _Column(field.name, _decimal_of(declared) or pa.string(), f"{name}::text as {name}")


def _is_known_to_spark(kind: pa.DataType) -> bool:
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import from_arrow_type

    try:
        from_arrow_type(kind)
    except PySparkTypeError:
        return False
    return True


def _decimal_of(declared: str) -> pa.DataType | None:
    """The driver has no decimals; a numeric that says its precision is one, others can be anything."""
    numbers = NUMERIC.fullmatch(declared)
    if numbers is None:
        return None
    precision, scale = int(numbers[1]), int(numbers[2])
    return pa.decimal128(precision, scale) if scale <= precision <= DECIMAL_DIGITS_MAX else None


def _opened(database: Sqlite) -> contextlib.closing[sqlite3.Connection]:
    """For reading alone: a file that is not there is not made."""
    try:
        # A path is no address: `#` and `%` have a meaning there, and two slashes before it name a host.
        address = f"file:///{quote(database.path.lstrip('/'))}?mode=ro"
        return contextlib.closing(sqlite3.connect(address, uri=True))
    except sqlite3.Error as wrong:
        raise OptionError(f"option url: {database.path} can't be read: {wrong}") from None


def _sqlite_type(declared: str) -> pa.DataType:
    return next((kind for word, kind in SQLITE_TYPES if word in declared.lower()), pa.string())


def _array(values: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    convert: Callable[[Any], Any] = _CONVERSIONS.get(kind, lambda value: value)
    return pa.array([None if value is None else convert(value) for value in values], kind)


_CONVERSIONS: dict[pa.DataType, Callable[[Any], Any]] = {
    pa.bool_(): bool,
    pa.string(): str,
    pa.float64(): lambda value: float(Decimal(str(value))),
    pa.binary(): lambda value: value if isinstance(value, bytes) else str(value).encode(),
}
