"""`format("moldau_iceberg")`: Iceberg tables through pyiceberg, each batch once by what the snapshots say of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from moldau.spark.option_values import OptionError
from moldau.spark.tables.changes import changes_of, check_keys
from moldau.spark.tables.iceberg.reading import ReadableIceberg
from moldau.spark.tables.iceberg.upsert import upsert
from moldau.spark.tables.options import (
    Mode,
    WriteOptions,
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
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyspark.sql.types import StructType

OWN_OPTIONS = ("table", "warehouse", "catalog")
CATALOG_PREFIX = "catalog."
QUERY_SUMMARY = "moldau.query"
BATCH_SUMMARY = "moldau.batch"
# Snapshots expire; the property is in the same commit and stays.
PROGRESS_PROPERTY = "moldau.batch."
# Another writer's commit may come first; each attempt looks at the table anew.
ATTEMPTS_MAX = 10
CREATIONS_MAX = 4


@dataclass(frozen=True, slots=True)
class IcebergTarget:
    """An Iceberg table. Appended files are written below its location, and a snapshot names them at the commit."""

    name: str
    catalog: str
    catalog_properties: dict[str, str] = field(repr=False)
    location: str
    file_properties: dict[str, str] = field(repr=False)
    schema: pa.Schema
    options: WriteOptions
    takes_files: bool

    def stage(self, batches: Iterable[pa.RecordBatch], area: StagingArea) -> Staged:
        return Staged(area, self._stage().write(self._conformed(batches), self._staged_schema(), area=area))

    def apply(self, staged: Sequence[Staged], step: Step) -> None:
        from pyiceberg.exceptions import CommitFailedException, ValidationException

        files = files_of(staged)
        if not files and not step.overwrite:
            return
        for attempt in range(ATTEMPTS_MAX):
            table = self._table()
            if step.batch is not None and newest_batch(table, step.query_id) >= step.batch:
                self._stage().delete(file.path for file in files)
                return
            try:
                self._stage().check(files, step.area)
                self._commit(table, files, step)
                break
            except (CommitFailedException, ValidationException):
                if attempt == ATTEMPTS_MAX - 1:
                    raise
        self._clean(files, step)

    def discard(self, staged: Sequence[Staged], area: StagingArea) -> None:
        """A commit whose end nobody saw may have happened: files that the table names stay."""
        named = {task.file.file_path.rpartition("/")[2] for task in self._table().scan().plan_files()}
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

    def _commit(self, table: Table, files: Sequence[StagedFile], step: Step) -> None:
        summary = _summary(step)
        with table.transaction() as transaction:
            if step.batch is not None:
                transaction.set_properties({PROGRESS_PROPERTY + step.query_id: str(step.batch)})
            if self._adds_files():
                if step.overwrite and table.current_snapshot() is not None:
                    transaction.delete("true", snapshot_properties=summary)
                paths = [f"{self.location}/{file.path}" for file in files]
                transaction.add_files(paths, snapshot_properties=summary, check_duplicate_files=False)
                return
            rows = self._stage().read(files, self._staged_schema())
            if self.options.mode is Mode.UPSERT:
                changes = changes_of(rows, self.options)
                if not step.overwrite:
                    upsert(transaction, table, changes, keys=self.options.keys, summary=summary)
                    return
                rows = changes.upserts
            if step.overwrite:
                transaction.overwrite(rows, snapshot_properties=summary)
            else:
                transaction.append(rows, snapshot_properties=summary)

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
        from pyiceberg.io.pyarrow import PyArrowFileIO

        scheme, host, path = PyArrowFileIO.parse_location(self.location, self.file_properties)
        return FileStage(PyArrowFileIO(self.file_properties).fs_by_scheme(scheme, host), root=path)

    def _table(self) -> Table:
        table = _catalog(self.catalog, self.catalog_properties).load_table(self.name)
        # The library would repeat a commit that lost a race without asking whether this batch is in the table by now.
        # The setting is changed in memory only: a commit sends what it changes, not what it read.
        properties = {**table.metadata.properties, "commit.retry.num-retries": "0"}
        table.metadata = table.metadata.model_copy(update={"properties": properties})
        return table


def _summary(step: Step) -> dict[str, str]:
    if step.batch is None:
        return {}
    return {QUERY_SUMMARY: step.query_id, BATCH_SUMMARY: str(step.batch)}


def newest_batch(table: Table, query_id: str) -> int:
    """The newest batch of a query in the table, -1 for none: by its snapshots, and where they expired by a property."""
    snapshot = table.current_snapshot()
    while snapshot is not None:
        summary = snapshot.summary.additional_properties if snapshot.summary else {}
        if summary.get(QUERY_SUMMARY) == query_id:
            return int(summary[BATCH_SUMMARY])
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)
    return int(table.properties.get(PROGRESS_PROPERTY + query_id, -1))


def _catalog(name: str, properties: Mapping[str, str]) -> Catalog:
    from pyiceberg.catalog import load_catalog

    return load_catalog(name, **properties)


def catalog_properties(options: Mapping[str, str]) -> dict[str, str]:
    """The catalog as pyiceberg wants it; a folder alone is enough for one that SQLite keeps there."""
    properties = with_prefix(options, CATALOG_PREFIX)
    warehouse = options.get("warehouse")
    if warehouse and "uri" not in properties:
        folder = Path(warehouse.removeprefix("file://")).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        # Queries of one warehouse wait for each other's commits instead of failing.
        uri = f"sqlite:///{folder}/catalog.db?timeout=60"
        return {"type": "sql", "uri": uri, "warehouse": f"file://{folder}", **properties}
    if warehouse:
        return {"warehouse": warehouse, **properties}
    if not properties and "catalog" not in options:
        raise OptionError(
            "option warehouse is missing: a folder, or a catalog by catalog=NAME or catalog.uri=…, catalog.type=…"
        )
    return properties


def iceberg_target(options: dict[str, str], schema: StructType) -> IcebergTarget:
    """The table, made if it is missing; what doesn't fit is refused here, before a task runs."""
    refuse_unknown(options, OWN_OPTIONS, (CATALOG_PREFIX,))
    writing = write_options(options)
    name = required(options, "table", example='.option("table", "shop.orders")')
    if "." not in name:
        raise OptionError(f"option table={name!r}: it takes NAMESPACE.TABLE")
    catalog, properties = options.get("catalog", "moldau"), catalog_properties(options)
    frame = arrow_schema(schema)
    check_columns(frame, writing)
    stored = table_part(frame, writing)
    table = _loaded_or_created(catalog, properties, name, stored)
    kept = table.schema().as_arrow()
    check_fits(stored, kept, name=name)
    location = table.location().rstrip("/")
    takes_files = table.spec().is_unpartitioned()
    return IcebergTarget(name, catalog, properties, location, dict(table.io.properties), kept, writing, takes_files)


def _loaded_or_created(catalog_name: str, properties: Mapping[str, str], name: str, schema: pa.Schema) -> Table:
    """Queries that start at once make the same catalog, namespace or table side by side; a second look finds it made.

    Each kind of catalog has its own way to fail then, so that every failure gets its second look.
    """
    for _ in range(CREATIONS_MAX - 1):
        with contextlib.suppress(Exception):
            return _create(_catalog(catalog_name, properties), name, schema)
    return _create(_catalog(catalog_name, properties), name, schema)


def _create(catalog: Catalog, name: str, schema: pa.Schema) -> Table:
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    try:
        return catalog.load_table(name)
    except (NoSuchTableError, NoSuchNamespaceError):
        catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
        return catalog.create_table_if_not_exists(name, schema)


def readable_iceberg(options: dict[str, str]) -> ReadableIceberg:
    refuse_unknown(options, OWN_OPTIONS, (CATALOG_PREFIX,))
    name = required(options, "table", example='.option("table", "shop.orders")')
    return ReadableIceberg(name, options.get("catalog", "moldau"), catalog_properties(options))


class IcebergSource(TableSource):
    """What Spark finds by the name moldau_iceberg."""

    KIND = TableKind("moldau_iceberg", readable_iceberg, iceberg_target)
