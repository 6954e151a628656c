"""Delta tables as rows: the version of the moment, file by file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from moldau.spark.option_values import OptionError
from moldau.spark.tables.delta.table import has_plain_files
from moldau.spark.tables.reading import Part

if TYPE_CHECKING:
    from deltalake import DeltaTable


@dataclass(frozen=True, slots=True)
class ReadableDelta:
    uri: str
    storage: Mapping[str, str] = field(repr=False)

    def columns(self) -> pa.Schema:
        return pa.schema(self.open().schema().to_arrow())

    def state(self) -> tuple[str, int]:
        table = self.open()
        return str(table.version()), len(table.file_uris()) if has_plain_files(table) else 1

    def batches(self, part: Part) -> Iterator[pa.RecordBatch]:
        table = self.open()
        table.load_as_version(int(part.state or 0))
        if not has_plain_files(table):
            yield from _queried(table)
            return
        dataset = table.to_pyarrow_dataset()
        fragments = sorted(dataset.get_fragments(), key=lambda each: str(each.path))
        for fragment in fragments[part.first :: part.step]:
            yield from fragment.to_batches(schema=dataset.schema)

    def open(self) -> DeltaTable:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            return DeltaTable(self.uri, storage_options=dict(self.storage) or None)
        except TableNotFoundError:
            raise OptionError(f"there is no Delta table at {self.uri}") from None


def _queried(table: DeltaTable) -> Iterator[pa.RecordBatch]:
    from deltalake import QueryBuilder

    for batch in QueryBuilder().register("kept", table).execute("select * from kept"):
        yield pa.record_batch(batch)
