"""Database tables that grow with their frames: columns that are added, and in PostgreSQL types that are widened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from moldau.spark.tables.databases.engines import Database, Postgresql
from moldau.spark.tables.databases.reading import postgresql_columns
from moldau.spark.tables.databases.table_names import TableName, quoted
from moldau.spark.tables.schemas import Evolution, evolution

if TYPE_CHECKING:
    from collections.abc import Callable

    from adbc_driver_manager.dbapi import Connection, Cursor

# Another query may be at the same table; each attempt looks anew.
ATTEMPTS_MAX = 10


def evolve(
    database: Database, connection: Connection, table: TableName, frame: pa.Schema, check: Callable[[pa.Schema], None]
) -> None:
    """Makes room for the frame in a table that exists. `check` refuses columns that don't fit, before any change."""
    from adbc_driver_manager import Error

    for attempt in range(ATTEMPTS_MAX):
        with connection.cursor() as cursor:
            needed = _needed(database, cursor, table, frame)
        # SQLite refuses at once whoever has read and now wants to write, where another one is about to do the same.
        connection.rollback()
        if not needed:
            return
        changed = {column.name for column in (*needed.added, *needed.widened)}
        check(pa.schema([column for column in frame if column.name not in changed]))
        try:
            with connection.cursor() as cursor:
                database.before_creation(cursor)
                for change in _changes(database, needed):
                    cursor.execute(f"alter table {table} {change}")
            connection.commit()
        except Error:
            connection.rollback()
            if attempt == ATTEMPTS_MAX - 1:
                raise


def _needed(database: Database, cursor: Cursor, table: TableName, frame: pa.Schema) -> Evolution:
    """SQLite's columns take whatever they are given: there is nothing to widen."""
    names = database.columns_of(cursor, table)
    if not names:
        return Evolution()
    kinds = {column.name: column.type for column in frame}
    if isinstance(database, Postgresql):
        kinds = {column.name: column.kind for column in postgresql_columns(cursor, table)}
    return evolution(frame, pa.schema([(name, kinds.get(name, pa.null())) for name in names]))


def _changes(database: Database, needed: Evolution) -> list[str]:
    added = [f"add column {quoted(one.name)} {database.column_type(one.type)}" for one in needed.added]
    widened = [f"alter column {quoted(one.name)} type {database.column_type(one.type)}" for one in needed.widened]
    return added + widened
