"""An Iceberg table through pyiceberg: its files by the snapshot, and each batch once by what snapshots say of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from moldau.spark.tables.data_files import Layout, OnePartition
from moldau.spark.tables.iceberg.partitions import TransformedPartitions
from moldau.spark.tables.staging import ROWS_AT_ONCE, FileStage, StagedFile

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask, Table

    from moldau.spark.tables.lakes import FileChange
    from moldau.spark.tables.upserts import StagedChanges
    from moldau.spark.tables.writing import Step

QUERY_SUMMARY = "moldau.query"
BATCH_SUMMARY = "moldau.batch"
# Snapshots expire; the property is in the same commit and stays.
PROGRESS_PROPERTY = "moldau.batch."
# Footers are small and far away: several are asked for at once.
FOOTERS_AT_ONCE = 8
MERGE_PROPERTY = "commit.manifest-merge.enabled"
FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True)
class IcebergLake:
    name: str
    catalog: str
    catalog_properties: Mapping[str, str] = field(repr=False)
    location: str
    file_properties: Mapping[str, str] = field(repr=False)
    layout: Layout
    takes_files: bool = True

    def conflicts(self) -> tuple[type[Exception], ...]:
        return commit_conflicts()

    def stage(self) -> FileStage:
        return stage_at(self.location, self.file_properties)

    def open(self) -> OpenedIceberg:
        return OpenedIceberg(without_retries(catalog_of(self.catalog, self.catalog_properties).load_table(self.name)))


def commit_conflicts() -> tuple[type[Exception], ...]:
    from pyiceberg.exceptions import CommitFailedException, ValidationException

    return CommitFailedException, ValidationException


def stage_at(location: str, properties: Mapping[str, str]) -> FileStage:
    from pyiceberg.io.pyarrow import PyArrowFileIO

    scheme, host, path = PyArrowFileIO.parse_location(location, dict(properties))
    return FileStage(PyArrowFileIO(dict(properties)).fs_by_scheme(scheme, host), root=path)


def catalog_of(name: str, properties: Mapping[str, str]) -> Catalog:
    from pyiceberg.catalog import load_catalog

    return load_catalog(name, **properties)


def without_retries(table: Table) -> Table:
    """The library would repeat a commit that lost a race without asking whether this batch is in the table by now.

    The setting is changed in memory only: a commit sends what it changes, not what it read.
    """
    properties = {**table.metadata.properties, "commit.retry.num-retries": "0"}
    table.metadata = table.metadata.model_copy(update={"properties": properties})
    return table


def layout_of(table: Table, file_bytes: int) -> Layout:
    spec = table.spec()
    return Layout(
        table.schema().as_arrow(),
        partitioning=OnePartition() if spec.is_unpartitioned() else TransformedPartitions(spec, table.schema()),
        file_bytes=file_bytes,
    )


@dataclass(frozen=True, slots=True)
class IcebergFile:
    """A file that the snapshot names, and its rows without those that were deleted from it."""

    task: FileScanTask
    table: Table

    @property
    def path(self) -> str:
        return self.task.file.file_path

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        schema = self.table.schema() if columns is None else self.table.schema().select(*columns)
        with self.table.io.new_input(self.path).open() as source, pq.ParquetFile(source) as file:
            names = _names_in_file(file.schema_arrow, schema.as_arrow())
            if names is not None and not self.task.delete_files:
                for batch in file.iter_batches(ROWS_AT_ONCE, columns=names, use_threads=False):
                    yield batch.select(names).rename_columns(schema.as_arrow().names)
                return
        # The library knows about deletions, defaults and names of old, and holds the rows of a file at once.
        scan: Any = ArrowScan(self.table.metadata, self.table.io, schema, AlwaysTrue())
        yield from scan.to_record_batches([self.task])


def _names_in_file(file: pa.Schema, wanted: pa.Schema) -> list[str] | None:
    """What a file calls these columns, by their ids; None if they are not in it as they are in the table."""
    by_id = {(field.metadata or {}).get(FIELD_ID): field for field in file}
    found = [by_id.get(field.metadata[FIELD_ID]) for field in wanted]
    fields = [field for field in found if field is not None]
    changed = [one for one, field in zip(fields, wanted, strict=False) if types.is_nested(one.type) and one != field]
    return [field.name for field in fields] if len(fields) == len(wanted) and not changed else None


@dataclass(frozen=True, slots=True)
class OpenedIceberg:
    table: Table

    def is_applied(self, step: Step) -> bool:
        return step.batch is not None and newest_batch(self.table, step.query_id) >= step.batch

    def columns(self) -> pa.Schema:
        schema: pa.Schema = self.table.schema().as_arrow()
        return schema

    def file_names(self) -> set[str]:
        return {task.file.file_path.rpartition("/")[2] for task in self.table.scan().plan_files()}

    def files_with(self, keys: pa.Table) -> Iterator[IcebergFile]:
        for task in self.table.scan(row_filter=_bounds(keys)).plan_files():
            yield IcebergFile(task, self.table)

    def files(self) -> list[IcebergFile]:
        return [IcebergFile(task, self.table) for task in self.table.scan().plan_files()]

    def replace(self, change: FileChange, step: Step) -> None:
        """One snapshot; its query and batch are in its summary, and in a property beside it."""
        summary = {} if step.batch is None else {QUERY_SUMMARY: step.query_id, BATCH_SUMMARY: str(step.batch)}
        removed = self.files() if change.everything else change.removed
        added = self._data_files(change.added)
        with self.table.transaction() as transaction:
            if step.batch is not None:
                transaction.set_properties({PROGRESS_PROPERTY + step.query_id: str(step.batch)})
            update = transaction.update_snapshot(snapshot_properties=summary)
            append = update.merge_append if self._merges_manifests() else update.fast_append
            with update.overwrite() if removed else append() as snapshot:
                for file in removed:
                    assert isinstance(file, IcebergFile), "a table gets back the files that it gave"
                    snapshot.delete_data_file(file.task.file)
                for data_file in added:
                    snapshot.append_data_file(data_file)

    def _merges_manifests(self) -> bool:
        return str(self.table.properties.get(MERGE_PROPERTY, "false")).lower() == "true"

    def write_through(self, changes: StagedChanges, step: Step) -> None:
        del changes, step
        raise AssertionError("every Iceberg table takes files")

    def _data_files(self, files: Sequence[StagedFile]) -> list[DataFile]:
        with ThreadPoolExecutor(FOOTERS_AT_ONCE) as footers:
            return list(footers.map(self._data_file, files))

    def _data_file(self, file: StagedFile) -> DataFile:
        """What a manifest says of a file, by its footer."""
        from pyiceberg.io.pyarrow import (
            compute_statistics_plan,
            data_file_statistics_from_parquet_metadata,
            parquet_path_to_id_mapping,
        )
        from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
        from pyiceberg.typedef import Record

        metadata, schema = self.table.metadata, self.table.schema()
        path = f"{self.table.location().rstrip('/')}/{file.path}"
        with self.table.io.new_input(path).open() as source:
            footer = pq.read_metadata(source)
        statistics = data_file_statistics_from_parquet_metadata(
            parquet_metadata=footer,
            stats_columns=compute_statistics_plan(schema, metadata.properties),
            parquet_column_mapping=parquet_path_to_id_mapping(schema),
        )
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=path,
            file_format=FileFormat.PARQUET,
            partition=Record(*file.partition),
            file_size_in_bytes=file.size_bytes,
            sort_order_id=None,
            spec_id=metadata.default_spec_id,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )


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


def _bounds(keys: pa.Table) -> BooleanExpression:
    from pyiceberg.expressions import AlwaysTrue, And, GreaterThanOrEqual, LessThanOrEqual

    everything: BooleanExpression = AlwaysTrue()
    ranges: list[BooleanExpression] = []
    for column in keys.schema:
        if types.is_integer(column.type) or types.is_string(column.type) or types.is_large_string(column.type):
            bounds: dict[str, Any] = pc.min_max(keys[column.name]).as_py()
            ranges += [
                GreaterThanOrEqual(term=column.name, value=bounds["min"]),
                LessThanOrEqual(term=column.name, value=bounds["max"]),
            ]
    return reduce(And, ranges, everything)
