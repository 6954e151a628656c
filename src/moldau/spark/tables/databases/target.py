"""`format("moldau_sql")`: PostgreSQL and SQLite through ADBC, each batch once by a row in the same transaction."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from moldau.spark.clients.librdkafka import NoAnswer
from moldau.spark.option_values import OptionError, wrong_option
from moldau.spark.tables.changes import check_keys
from moldau.spark.tables.databases.engines import Database, complaint_of, database_of, numbered
from moldau.spark.tables.databases.evolution import evolve
from moldau.spark.tables.databases.reading import ReadableDatabase
from moldau.spark.tables.databases.statements import ROW_COLUMN, Statements
from moldau.spark.tables.databases.table_names import PROGRESS_TABLE, TableName, quoted, writable_table
from moldau.spark.tables.options import (
    DATABASE_OPTIONS,
    URL_EXAMPLE,
    Mode,
    WriteOptions,
    refuse_unknown,
    required,
    write_options,
)
from moldau.spark.tables.schemas import SchemaMismatch, arrow_schema, check_columns, conform, table_part
from moldau.spark.tables.sources import TableKind, TableSource
from moldau.spark.tables.staging import Staged, StagingArea
from moldau.spark.tables.writing import Step

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection, Cursor
    from pyspark.sql.types import StructType

# A task's rows are numbered from here times its partition: later partitions come later.
PARTITION_ROWS_MAX = 1 << 40


@dataclass(frozen=True, slots=True)
class SqlTarget:
    """A table of a database. The commit's transaction holds the rows, the progress and nothing else."""

    database: Database
    table: TableName
    frame: pa.Schema
    options: WriteOptions

    def stage(self, batches: Iterable[pa.RecordBatch], area: StagingArea) -> Staged:
        from pyspark import TaskContext

        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        rows = numbered(self._checked(batches), partition * PARTITION_ROWS_MAX)
        return self.database.stage(rows, self._staged_schema(), table=self.table, area=area)

    def apply(self, staged: Sequence[Staged], step: Step) -> None:
        filled = [message for message in staged if message.files or message.table is not None]
        if not filled and not step.overwrite:
            return
        with self.database.connect() as connection:
            if self._is_new(connection, step):
                self._move(connection, filled, step)
                connection.commit()
            else:
                connection.rollback()
            # The rows are in the table, once: that staged ones can't be removed at the moment is no reason to fail.
            with contextlib.suppress(Exception):
                self.database.remove(connection, filled, table=self.table)
                self.database.clean(connection, step.area, table=self.table, committed=True)

    def discard(self, staged: Sequence[Staged], area: StagingArea) -> None:
        with self.database.connect() as connection:
            self.database.remove(connection, staged, table=self.table)
            self.database.clean(connection, area, table=self.table, committed=False)

    def _checked(self, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            check_keys(batch, self.options.keys)
            yield conform(batch, self.frame)

    def _staged_schema(self) -> pa.Schema:
        return self.frame.append(pa.field(ROW_COLUMN, pa.int64()))

    def statements(self) -> Statements:
        return Statements(self.table, tuple(table_part(self.frame, self.options).names), self.options)

    def _is_new(self, connection: Connection, step: Step) -> bool:
        if step.batch is None:
            return True
        with connection.cursor() as cursor:
            cursor.execute(self.statements().take_batch(step.query_id, step.batch))
            return bool(cursor.fetchall())

    def _move(self, connection: Connection, staged: Sequence[Staged], step: Step) -> None:
        with connection.cursor() as cursor:
            self._run_moves(cursor, staged, step)

    def _run_moves(self, cursor: Cursor, staged: Sequence[Staged], step: Step) -> None:
        statements = self.statements()
        if step.overwrite:
            cursor.execute(statements.empty())
        relations = self.database.relations(cursor, staged, self._staged_schema(), table=self.table)
        if not relations:
            return
        moves = statements.upsert(relations) if self.options.mode is Mode.UPSERT else statements.append(relations)
        for statement in moves:
            cursor.execute(statement)


def sql_target(options: dict[str, str], schema: StructType) -> SqlTarget:
    """The table, made if it is missing; what doesn't fit is refused here, before a task runs."""
    refuse_unknown(options, DATABASE_OPTIONS)
    writing = write_options(options)
    url, named = required(options, "url", example=URL_EXAMPLE), required(options, "dbtable", example="orders")
    database, table = database_of(url), writable_table(named, url)
    frame = arrow_schema(schema)
    check_columns(frame, writing)
    _check_types(frame, database)
    target = SqlTarget(database, table, frame, writing)
    _create_and_check(target)
    return target


def _check_types(frame: pa.Schema, database: Database) -> None:
    nested = [column for column in frame if database.column_type(column.type) is None]
    if nested:
        problems = "; ".join(f"column {column.name!r} is {column.type}" for column in nested)
        raise SchemaMismatch(f"a database table takes plain columns: {problems}; to_json makes text of such values")


def _create_and_check(target: SqlTarget) -> None:
    from adbc_driver_manager import Error

    try:
        connection = target.database.connect()
    except Error as problem:
        raise NoAnswer(f"option url: the database can't be reached: {complaint_of(problem)}") from None
    try:
        _create_what_is_missing(target, connection)
    except Error as problem:
        named, answer = ".".join(target.table.parts), complaint_of(problem)
        raise wrong_option("dbtable", named, f"allowed is a table that the database makes or has: {answer}") from None


def _create_what_is_missing(target: SqlTarget, connection: Connection) -> None:
    """Looks first and writes only what is missing: this runs for every batch."""
    stored = table_part(target.frame, target.options)
    statements = target.statements()
    with connection:
        if target.options.merge_schema:
            evolve(target.database, connection, target.table, stored, check=partial(_check_kinds, target, connection))
        # A cursor for each step: SQLite takes no commit while a statement of another is open.
        with connection.cursor() as cursor:
            columns = target.database.columns_of(cursor, target.table)
            progress = target.database.columns_of(cursor, TableName(target.table.schema, PROGRESS_TABLE))
        if columns:
            with connection.cursor() as cursor:
                _check_columns(target, cursor, columns)
        if not columns or not progress:
            with connection.cursor() as cursor:
                target.database.before_creation(cursor)
                cursor.execute(_create_table(target, stored))
                cursor.execute(statements.create_progress())
            connection.commit()


def _check_columns(target: SqlTarget, cursor: Cursor, columns: Collection[str]) -> None:
    from adbc_driver_manager import Error

    stored = table_part(target.frame, target.options)
    missing = [repr(name) for name in stored.names if name not in columns]
    if missing:
        raise SchemaMismatch(
            f"the frame doesn't fit table {target.table}: the table has no column {', '.join(missing)}."
            " With mergeSchema=true columns are added and types widened"
        )
    probe = _check_probe(target, cursor, stored)
    if target.options.mode is not Mode.UPSERT:
        return
    try:
        target.database.check(cursor, f"{probe} {target.statements().on_conflict()}")
    except Error as problem:
        raise OptionError(
            f"option keys={','.join(target.options.keys)}: an upsert into {target.table} needs a primary key or"
            f" unique index over exactly these columns ({complaint_of(problem)})"
        ) from None


def _check_kinds(target: SqlTarget, connection: Connection, columns: pa.Schema) -> None:
    if columns.names:
        with connection.cursor() as cursor:
            _check_probe(target, cursor, columns)


def _check_probe(target: SqlTarget, cursor: Cursor, columns: pa.Schema) -> str:
    """A statement that changes nothing, and that the database takes if the table takes such columns."""
    from adbc_driver_manager import Error

    statements = Statements(target.table, tuple(columns.names), target.options)
    probe = statements.probe([target.database.column_type(column.type) or "" for column in columns])
    try:
        target.database.check(cursor, probe)
    except Error as problem:
        raise SchemaMismatch(f"the frame doesn't fit table {target.table}: {complaint_of(problem)}") from None
    return probe


def _create_table(target: SqlTarget, stored: pa.Schema) -> str:
    columns = [f"{quoted(column.name)} {target.database.column_type(column.type)}" for column in stored]
    if target.options.keys:
        columns.append(f"primary key ({', '.join(quoted(key) for key in target.options.keys)})")
    return f"create table if not exists {target.table} ({', '.join(columns)})"


def readable_database(options: dict[str, str]) -> ReadableDatabase:
    refuse_unknown(options, DATABASE_OPTIONS)
    url, named = required(options, "url", example=URL_EXAMPLE), required(options, "dbtable", example="orders")
    return ReadableDatabase(database_of(url), TableName.parse(named, url))


class SqlSource(TableSource):
    """What Spark finds by the name moldau_sql."""

    KIND = TableKind("moldau_sql", readable_database, sql_target)
