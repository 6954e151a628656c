"""PostgreSQL and SQLite through ADBC: how each is reached, which types it has, and where rows wait for a commit."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import pyarrow as pa
from pyarrow import fs, types

from moldau.core.clock import SystemClock
from moldau.spark.option_values import OptionError
from moldau.spark.tables.data_files import Layout, write_files
from moldau.spark.tables.databases.statements import ROW_COLUMN, text_literal
from moldau.spark.tables.databases.table_names import (
    POSTGRESQL_SCHEMES,
    SQLITE_SCHEMES,
    STAGING_PREFIX,
    TableName,
    quoted,
)
from moldau.spark.tables.staging import (
    FileStage,
    Staged,
    StagedRowsLost,
    StagedTable,
    StagingArea,
    files_of,
    tables_of,
)

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection, Cursor

BUSY_TIMEOUT_MS = 60_000
HOUR_MS = 3_600_000
# No task stages rows for longer than this and is still waited for.
GIVEN_UP_MS = 24 * HOUR_MS


class Database(Protocol):
    """What differs from one database to another."""

    def connect(self) -> Connection: ...

    def column_type(self, kind: pa.DataType) -> str | None:
        """The type that a column is made with; None if there is none for such values."""
        ...

    def columns_of(self, cursor: Cursor, table: TableName) -> list[str]: ...

    def check(self, cursor: Cursor, probe: str) -> None:
        """Fails as the statement would, and has no effect."""
        ...

    def before_creation(self, cursor: Cursor) -> None:
        """Two queries that start at once don't make the same table side by side."""
        ...

    def stage(
        self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, table: TableName, area: StagingArea
    ) -> Staged: ...

    def relations(self, cursor: Cursor, staged: Sequence[Staged], schema: pa.Schema, *, table: TableName) -> list[str]:
        """Staged rows as something to select from, within the transaction that commits them."""
        ...

    def remove(self, connection: Connection, staged: Sequence[Staged], *, table: TableName) -> None: ...

    def clean(self, connection: Connection, area: StagingArea, *, table: TableName, committed: bool) -> None:
        """Removes what killed tasks left in this area, and in those that were given up a day ago or earlier.

        In an area whose batch is not in the table another driver may be at work: there only the own attempt's goes.
        """
        ...


Kinds = tuple[tuple[Callable[[pa.DataType], bool], str], ...]

SHARED_KINDS: Kinds = (
    (types.is_int64, "bigint"),
    (types.is_int32, "integer"),
    (types.is_integer, "smallint"),
    (types.is_string, "text"),
    (types.is_boolean, "boolean"),
    (types.is_date, "date"),
)
POSTGRESQL_KINDS: Kinds = (
    *SHARED_KINDS,
    (types.is_float32, "real"),
    (types.is_float64, "double precision"),
    (types.is_binary, "bytea"),
)
SQLITE_KINDS: Kinds = (
    *SHARED_KINDS,
    (types.is_floating, "double"),
    (types.is_binary, "blob"),
    (types.is_timestamp, "text"),
)


def _first(kinds: Kinds, kind: pa.DataType) -> str | None:
    if types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    return next((name for is_kind, name in kinds if is_kind(kind)), None)


@dataclass(frozen=True, slots=True)
class Sqlite:
    """A file, with one writer at a time: rows wait in files beside it, so that tasks don't wait for each other."""

    path: str

    def connect(self) -> Connection:
        import adbc_driver_sqlite.dbapi as driver

        connection = driver.connect(self.path)
        with connection.cursor() as cursor:
            cursor.execute(f"pragma busy_timeout = {BUSY_TIMEOUT_MS}")
            cursor.fetchall()
        return connection

    def column_type(self, kind: pa.DataType) -> str | None:
        return _first(SQLITE_KINDS, kind)

    def columns_of(self, cursor: Cursor, table: TableName) -> list[str]:
        schema = "" if table.schema is None else f", {text_literal(table.schema)}"
        cursor.execute(f"select name from pragma_table_info({text_literal(table.name)}{schema})")
        return [row[0] for row in cursor.fetchall()]

    def check(self, cursor: Cursor, probe: str) -> None:
        """Explained, not run: a write would wait for other writers."""
        cursor.execute(f"explain {probe}")
        cursor.fetchall()

    def before_creation(self, cursor: Cursor) -> None:
        """SQLite has one writer at a time, and `if not exists` is enough."""

    def stage(
        self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, table: TableName, area: StagingArea
    ) -> Staged:
        del table
        return Staged(area, tuple(write_files(batches, Layout(schema), stage=self._stage(), area=area)))

    def relations(self, cursor: Cursor, staged: Sequence[Staged], schema: pa.Schema, *, table: TableName) -> list[str]:
        del table
        files, stage = files_of(staged), self._stage()
        if not files:
            return []
        stage.check(files, staged[0].area)
        name = f"{STAGING_PREFIX}{uuid.uuid4().hex[:12]}"
        rows = (_without_decimals(batch) for file in files for batch in stage.read(file))
        stored = _without_decimals(schema.empty_table()).schema
        # A little at a time, so that no batch has to fit into the driver's memory.
        reader = pa.RecordBatchReader.from_batches(stored, rows)
        cursor.adbc_ingest(name, reader, mode="create", temporary=True)
        return [quoted(name)]

    def remove(self, connection: Connection, staged: Sequence[Staged], *, table: TableName) -> None:
        del connection, table
        self._stage().delete(file.path for file in files_of(staged))

    def clean(self, connection: Connection, area: StagingArea, *, table: TableName, committed: bool) -> None:
        del connection, table
        stage = self._stage()
        stage.delete(stage.leftovers(area, kept=()) if committed else stage.of_attempt(area))
        given_up_ms = SystemClock().now_ms() - GIVEN_UP_MS
        everything = stage.filesystem.get_file_info(fs.FileSelector(stage.root, allow_not_found=True, recursive=True))
        files = (info for info in everything if info.type == fs.FileType.File and info.mtime_ns is not None)
        old = [info.path for info in files if info.mtime_ns // 1_000_000 < given_up_ms]
        stage.delete(path.removeprefix(f"{stage.root}/") for path in old)

    def _stage(self) -> FileStage:
        return FileStage(fs.LocalFileSystem(), root=f"{self.path}-staging")


Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def _without_decimals(rows: Rows) -> Rows:
    """As text, which SQLite makes numbers of where none is lost; its driver takes no decimals."""
    for index, column in enumerate(rows.schema):
        if types.is_decimal(column.type):
            rows = rows.set_column(index, column.name, rows[column.name].cast(pa.string()))
    return rows


@dataclass(frozen=True, slots=True)
class Postgresql:
    """Rows wait in tables of their own, filled side by side by COPY; a commit moves them within the server."""

    url: str = field(repr=False)

    def connect(self) -> Connection:
        import adbc_driver_postgresql.dbapi as driver

        connection: Connection = driver.connect(self.url)
        return connection

    def column_type(self, kind: pa.DataType) -> str | None:
        if types.is_timestamp(kind):
            return "timestamp" if kind.tz is None else "timestamptz"
        return _first(POSTGRESQL_KINDS, kind)

    def columns_of(self, cursor: Cursor, table: TableName) -> list[str]:
        cursor.execute(
            "select attname from pg_attribute where attnum > 0 and not attisdropped"
            f" and attrelid = to_regclass({text_literal(str(table))}) order by attnum"
        )
        return [row[0] for row in cursor.fetchall()]

    def check(self, cursor: Cursor, probe: str) -> None:
        """Run, on no rows: only the planner looks for the unique key."""
        cursor.execute(probe)

    def before_creation(self, cursor: Cursor) -> None:
        """Here `if not exists` fails when two look at once."""
        cursor.execute("select pg_advisory_xact_lock(hashtext('moldau'))")
        cursor.fetchall()

    def stage(
        self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, table: TableName, area: StagingArea
    ) -> Staged:
        rows = iter(batches)
        first = next(rows, None)
        if first is None:
            return Staged(area)
        name = staging_name(area, hour=SystemClock().now_ms() // HOUR_MS)
        columns = ", ".join(f"{quoted(column.name)} {self.column_type(column.type)}" for column in schema)
        counted = _Counted(itertools.chain([first], rows))
        reader = pa.RecordBatchReader.from_batches(schema, counted)
        with self.connect() as connection, connection.cursor() as cursor:
            # Not logged, so a crash of the server empties it: whoever commits looks whether all rows are there.
            cursor.execute(f"create unlogged table {table.beside(name)} ({columns})")
            cursor.adbc_ingest(name, reader, mode="append", db_schema_name=table.schema)
            connection.commit()
        return Staged(area, table=StagedTable(name, counted.rows))

    def relations(self, cursor: Cursor, staged: Sequence[Staged], schema: pa.Schema, *, table: TableName) -> list[str]:
        del schema
        # A server may confirm a commit before it is durable; Spark believes it and never runs the batch again.
        cursor.execute(
            "select set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off'"
        )
        cursor.fetchall()
        for message in staged:
            if message.table is not None:
                _check(cursor, message.table, message.area, table)
        return [table.beside(stage.name) for stage in tables_of(staged)]

    def remove(self, connection: Connection, staged: Sequence[Staged], *, table: TableName) -> None:
        _drop(connection, [stage.name for stage in tables_of(staged)], table)

    def clean(self, connection: Connection, area: StagingArea, *, table: TableName, committed: bool) -> None:
        with connection.cursor() as cursor:
            found = _staged_tables(cursor, f"starts_with(tablename, {text_literal(STAGING_PREFIX)})", table)
        hour = SystemClock().now_ms() // HOUR_MS
        given_up = [name for name in found if is_given_up(name, area, hour=hour, committed=committed)]
        _drop(connection, given_up, table)


def _staged_tables(cursor: Cursor, condition: str, table: TableName) -> list[str]:
    schema = "current_schema()" if table.schema is None else text_literal(table.schema)
    cursor.execute(f"select tablename from pg_tables where schemaname = {schema} and {condition}")
    return [row[0] for row in cursor.fetchall()]


def _check(cursor: Cursor, stage: StagedTable, area: StagingArea, table: TableName) -> None:
    """All rows are there, and stay: from here on this transaction holds the table."""
    if not _staged_tables(cursor, f"tablename = {text_literal(stage.name)}", table):
        raise StagedRowsLost(area, staged=stage.rows, left=0)
    cursor.execute(f"select count(*) from {table.beside(stage.name)}")
    left = cursor.fetchall()[0][0]
    if left != stage.rows:
        raise StagedRowsLost(area, staged=stage.rows, left=left)


def _drop(connection: Connection, names: Sequence[str], table: TableName) -> None:
    if not names:
        return
    with connection.cursor() as cursor:
        # A task that still writes holds its table: it will be dropped with the next batch.
        cursor.execute("set lock_timeout = '2s'")
        for name in names:
            cursor.execute(f"drop table if exists {table.beside(name)}")
    connection.commit()


def staging_name(area: StagingArea, *, hour: int) -> str:
    """Names query, batch, hour and attempt: whoever comes later knows whether somebody still needs the table."""
    batch = "x" if area.batch is None else str(area.batch)
    return f"{STAGING_PREFIX}{area.label}_{batch}_{hour}_{area.attempt}_{uuid.uuid4().hex[:8]}"


def is_given_up(name: str, area: StagingArea, *, hour: int, committed: bool) -> bool:
    """Of a batch that counts, every attempt at it and at those before it; of one that failed, this attempt's.

    So is what was staged so long ago that no task can be at it.
    """
    label, batch, made_at_hour, attempt, *_ = name.removeprefix(STAGING_PREFIX).split("_")
    if int(made_at_hour) < hour - GIVEN_UP_MS // HOUR_MS:
        return True
    if label != area.label:
        return False
    if area.batch is None:
        return True
    return int(batch) <= area.batch if committed else (int(batch), attempt) == (area.batch, area.attempt)


class _Counted:
    """Batches on their way, and how many rows went by."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


def database_of(url: str) -> Database:
    if url.startswith(POSTGRESQL_SCHEMES):
        return Postgresql(url)
    if url.startswith(SQLITE_SCHEMES):
        path = url.removeprefix("sqlite:").removeprefix("//").partition("?")[0]
        if not path or path == "/":
            raise OptionError(f"option url={url!r}: it names no file, as sqlite:///data/shop.db does")
        return Sqlite(str(Path(path).absolute()))
    scheme = url.partition(":")[0]
    raise OptionError(
        f"option url: {scheme!r} is not known; there are postgresql://USER@HOST/DATABASE and sqlite:///FILE"
    )


def complaint_of(wrong: Exception) -> str:
    """The database's own words in one line, without the statement that a driver repeats before them."""
    return str(wrong).rpartition("ERROR:")[2].strip().partition("\n")[0]


def numbered(batches: Iterable[pa.RecordBatch], first_number: int) -> Iterator[pa.RecordBatch]:
    """Rows with their place in the batch as a last column."""
    for batch in batches:
        numbers = pa.array(range(first_number, first_number + batch.num_rows), pa.int64())
        first_number += batch.num_rows
        yield batch.append_column(ROW_COLUMN, numbers)
