"""Iceberg tables as rows: the snapshot of the moment, file by file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from moldau.spark.option_values import OptionError
from moldau.spark.tables.reading import Part

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask, Table


@dataclass(frozen=True, slots=True)
class ReadableIceberg:
    name: str
    catalog: str
    properties: Mapping[str, str] = field(repr=False)

    def columns(self) -> pa.Schema:
        schema: pa.Schema = self.open().schema().as_arrow()
        return schema

    def state(self) -> tuple[str, int]:
        table = self.open()
        snapshot = table.current_snapshot()
        if snapshot is None:
            return "", 0
        return str(snapshot.snapshot_id), len(_tasks(table, snapshot.snapshot_id))

    def batches(self, part: Part) -> Iterator[pa.RecordBatch]:
        if not part.state:
            return
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        table, snapshot_id = self.open(), int(part.state)
        tasks = _tasks(table, snapshot_id)[part.first :: part.step]
        scan: Any = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
        yield from scan.to_record_batches(tasks)

    def open(self) -> Table:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            return load_catalog(self.catalog, **dict(self.properties)).load_table(self.name)
        except (NoSuchTableError, NoSuchNamespaceError):
            raise OptionError(f"there is no Iceberg table {self.name}") from None


def _tasks(table: Table, snapshot_id: int) -> list[FileScanTask]:
    return sorted(table.scan(snapshot_id=snapshot_id).plan_files(), key=lambda task: task.file.file_path)
