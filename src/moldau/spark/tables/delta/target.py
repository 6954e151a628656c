"""`format("moldau_delta")`: Delta tables through deltalake, each batch once by the log's application transactions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import fs

from moldau.core.clock import SystemClock
from moldau.spark.tables.changes import changes_of, check_keys
from moldau.spark.tables.delta.log import statistics_of
from moldau.spark.tables.delta.reading import ReadableDelta
from moldau.spark.tables.options import (
    Mode,
    WriteOptions,
    names_of,
    refuse_unknown,
    required,
    with_prefix,
    write_options,
)
from moldau.spark.tables.schemas import arrow_schema, check_columns, check_fits, conform, table_part
from moldau.spark.tables.sources import TableKind, TableSource
from moldau.spark.tables.staging import FileStage, Staged, StagedFile, StagingArea, files_of
from moldau.spark.tables.writing import Step

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import AddAction
    from pyspark.sql.types import StructType

OWN_OPTIONS = ("path", "partitionColumns")
STORAGE_PREFIX = "storage."
# Another writer's commit may come first; each attempt looks at the table anew.
ATTEMPTS_MAX = 10
# Tables that ask no more of a writer than this take files as they are; others get their rows through deltalake.
PLAIN_WRITER_VERSION_MAX = 2
PLAIN_FEATURES = frozenset({"appendOnly", "timestampNtz"})


@dataclass(frozen=True, slots=True)
class DeltaTarget:
    """A Delta table. Appended files are written where the table keeps its own, and the log names them at the commit."""

    uri: str
    storage: dict[str, str] = field(repr=False)
    schema: pa.Schema
    options: WriteOptions
    takes_files: bool

    def stage(self, batches: Iterable[pa.RecordBatch], area: StagingArea) -> Staged:
        statistics = partial(statistics_of, schema=self.schema)
        file = self._stage().write(self._conformed(batches), self._staged_schema(), area=area, statistics=statistics)
        return Staged(area, file)

    def apply(self, staged: Sequence[Staged], step: Step) -> None:
        from deltalake.exceptions import CommitFailedError

        files = files_of(staged)
        if not files and not step.overwrite:
            return
        for attempt in range(ATTEMPTS_MAX):
            table = self._table()
            if self._is_applied(table, step):
                self._stage().delete(file.path for file in files)
                return
            try:
                self._stage().check(files, step.area)
                self._commit(table, files, step)
                break
            except CommitFailedError:
                if attempt == ATTEMPTS_MAX - 1:
                    raise
        self._clean(files, step)

    def discard(self, staged: Sequence[Staged], area: StagingArea) -> None:
        """A commit whose end nobody saw may have happened: files that the table names stay."""
        table = self._table()
        named = {uri.rpartition("/")[2] for uri in table.file_uris()}
        stage = self._stage()
        paths = {*(file.path for file in files_of(staged)), *stage.of_attempt(area)}
        stage.delete(path for path in paths if path.rpartition("/")[2] not in named)

    def _conformed(self, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        schema = self._staged_schema()
        for batch in batches:
            check_keys(batch, self.options.keys)
            yield conform(batch, schema)

    def _staged_schema(self) -> pa.Schema:
        column = self.options.operation_column
        return self.schema if column is None else self.schema.append(pa.field(column, pa.string()))

    def _is_applied(self, table: DeltaTable, step: Step) -> bool:
        if step.batch is None:
            return False
        newest = table.transaction_version(step.query_id)
        return newest is not None and newest >= step.batch

    def _commit(self, table: DeltaTable, files: Sequence[StagedFile], step: Step) -> None:
        properties = _commit_properties(step)
        mode = "overwrite" if step.overwrite else "append"
        if self._adds_files():
            table.create_write_transaction(
                [_add_action(file) for file in files], mode, table.schema(), commit_properties=properties
            )
        elif self.options.mode is Mode.UPSERT and not step.overwrite:
            self._merge(table, self._stage().read(files, self._staged_schema()), properties)
        else:
            self._write_rows(table, files, step)

    def _write_rows(self, table: DeltaTable, files: Sequence[StagedFile], step: Step) -> None:
        from deltalake import write_deltalake

        rows = self._stage().read(files, self._staged_schema())
        if self.options.mode is Mode.UPSERT:
            rows = changes_of(rows, self.options).upserts
        properties = _commit_properties(step)
        if step.overwrite:
            write_deltalake(table, rows, mode="overwrite", commit_properties=properties)
        else:
            write_deltalake(table, rows, mode="append", commit_properties=properties)

    def _merge(self, table: DeltaTable, rows: pa.Table, properties: CommitProperties) -> None:
        changes = changes_of(rows, self.options)
        marked = pa.concat_tables([_marked(changes.upserts, deleted=False), _marked(changes.deletions, deleted=True)])
        columns = {_quoted(name): f"change.{_quoted(name)}" for name in self.schema.names}
        same_key = " AND ".join(f"kept.{_quoted(key)} = change.{_quoted(key)}" for key in self.options.keys)
        merger = table.merge(marked, same_key, source_alias="change", target_alias="kept", commit_properties=properties)
        (
            merger.when_matched_delete(predicate=f"change.{_DELETED}")
            .when_matched_update(columns, predicate=f"NOT change.{_DELETED}")
            .when_not_matched_insert(columns, predicate=f"NOT change.{_DELETED}")
            .execute()
        )

    def _clean(self, files: Sequence[StagedFile], step: Step) -> None:
        """After the commit: what is in the way of nobody is removed, and a failure to do so is no failure."""
        stage = self._stage()
        paths = [file.path for file in files]
        if not self._adds_files():
            stage.delete(paths)
        with contextlib.suppress(OSError):
            stage.delete(stage.leftovers(step.area, paths))

    def _adds_files(self) -> bool:
        return self.takes_files and self.options.mode is Mode.APPEND

    def _stage(self) -> FileStage:
        from deltalake.fs import DeltaStorageHandler

        return FileStage(fs.PyFileSystem(DeltaStorageHandler(self.uri, self.storage or None)), root="")

    def _table(self) -> DeltaTable:
        from deltalake import DeltaTable

        return DeltaTable(self.uri, storage_options=self.storage or None)


_DELETED = "__moldau_deleted"


def _marked(rows: pa.Table, *, deleted: bool) -> pa.Table:
    return rows.append_column(_DELETED, pa.array([deleted] * rows.num_rows, pa.bool_()))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _commit_properties(step: Step) -> CommitProperties:
    from deltalake import CommitProperties, Transaction

    if step.batch is None:
        return CommitProperties()
    return CommitProperties(app_transactions=[Transaction(step.query_id, step.batch, SystemClock().now_ms())])


def _add_action(file: StagedFile) -> AddAction:
    from deltalake.transaction import AddAction

    now_ms = SystemClock().now_ms()
    return AddAction(file.path, file.size_bytes, {}, now_ms, True, file.statistics)


def _takes_files(table: DeltaTable) -> bool:
    """Whether a file of rows is all there is to an append: no partitions, constraints or generated columns."""
    protocol = table.protocol()
    features = set(protocol.writer_features or ()) - PLAIN_FEATURES
    if protocol.min_writer_version > PLAIN_WRITER_VERSION_MAX and (features or protocol.writer_features is None):
        return False
    metadata = table.metadata()
    invariants = any("delta.invariants" in (column.metadata or {}) for column in table.schema().fields)
    return not metadata.partition_columns and not invariants


def delta_target(options: dict[str, str], schema: StructType) -> DeltaTarget:
    """The table, made if it is missing; what doesn't fit is refused here, before a task runs."""
    from deltalake import DeltaTable

    refuse_unknown(options, OWN_OPTIONS, (STORAGE_PREFIX,))
    writing = write_options(options)
    uri = required(options, "path", example='.start("/data/orders") or .option("path", "s3://bucket/orders")')
    storage = with_prefix(options, STORAGE_PREFIX)
    frame = arrow_schema(schema)
    check_columns(frame, writing)
    stored = table_part(frame, writing)
    if not DeltaTable.is_deltatable(uri, storage or None):
        partitions = list(names_of(options.get("partitioncolumns", "")))
        DeltaTable.create(uri, stored, mode="ignore", partition_by=partitions or None, storage_options=storage or None)
    table = DeltaTable(uri, storage_options=storage or None)
    kept = pa.schema(table.schema().to_arrow())
    check_fits(stored, kept, name=uri)
    return DeltaTarget(uri, storage, kept, writing, takes_files=_takes_files(table))


def readable_delta(options: dict[str, str]) -> ReadableDelta:
    refuse_unknown(options, OWN_OPTIONS, (STORAGE_PREFIX,))
    uri = required(options, "path", example='.load("/data/orders") or .option("path", "s3://bucket/orders")')
    return ReadableDelta(uri, with_prefix(options, STORAGE_PREFIX))


class DeltaSource(TableSource):
    """What Spark finds by the name moldau_delta."""

    KIND = TableKind("moldau_delta", readable_delta, delta_target)
