"""Delta and Iceberg tables as rows: the version or snapshot of the moment, file by file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from moldau.spark.option_values import OptionError
from moldau.spark.tables.reading import Part

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyiceberg.table import FileScanTask, Table


@dataclass(frozen=True, slots=True)
class ReadableDelta:
    uri: str
    storage: Mapping[str, str] = field(repr=False)

    def columns(self) -> pa.Schema:
        return pa.schema(self._table().schema().to_arrow())

    def state(self) -> tuple[str, int]:
        table = self._table()
        return str(table.version()), len(table.file_uris()) if _has_plain_files(table) else 1

    def batches(self, part: Part) -> Iterator[pa.RecordBatch]:
        table = self._table()
        table.load_as_version(int(part.state or 0))
        if not _has_plain_files(table):
            yield from _queried(table)
            return
        dataset = table.to_pyarrow_dataset()
        fragments = sorted(dataset.get_fragments(), key=lambda each: str(each.path))
        for fragment in fragments[part.first :: part.step]:
            yield from fragment.to_batches(schema=dataset.schema)

    def _table(self) -> DeltaTable:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            return DeltaTable(self.uri, storage_options=dict(self.storage) or None)
        except TableNotFoundError:
            raise OptionError(f"there is no Delta table at {self.uri}") from None


def _has_plain_files(table: DeltaTable) -> bool:
    """Whether the rows are those of the files; deletion vectors and mapped columns make it more complicated."""
    return table.protocol().min_reader_version == 1


def _queried(table: DeltaTable) -> Iterator[pa.RecordBatch]:
    from deltalake import QueryBuilder

    for batch in QueryBuilder().register("kept", table).execute("select * from kept"):
        yield pa.record_batch(batch)


@dataclass(frozen=True, slots=True)
class ReadableIceberg:
    name: str
    catalog: str
    properties: Mapping[str, str] = field(repr=False)

    def columns(self) -> pa.Schema:
        schema: pa.Schema = self._table().schema().as_arrow()
        return schema

    def state(self) -> tuple[str, int]:
        table = self._table()
        snapshot = table.current_snapshot()
        if snapshot is None:
            return "", 0
        return str(snapshot.snapshot_id), len(_tasks(table, snapshot.snapshot_id))

    def batches(self, part: Part) -> Iterator[pa.RecordBatch]:
        if not part.state:
            return
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        table, snapshot_id = self._table(), int(part.state)
        tasks = _tasks(table, snapshot_id)[part.first :: part.step]
        scan: Any = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
        yield from scan.to_record_batches(tasks)

    def _table(self) -> Table:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            return load_catalog(self.catalog, **dict(self.properties)).load_table(self.name)
        except (NoSuchTableError, NoSuchNamespaceError):
            raise OptionError(f"there is no Iceberg table {self.name}") from None


def _tasks(table: Table, snapshot_id: int) -> list[FileScanTask]:
    return sorted(table.scan(snapshot_id=snapshot_id).plan_files(), key=lambda task: task.file.file_path)
