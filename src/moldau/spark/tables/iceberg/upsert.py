"""Upserts into Iceberg by copy-on-write: a file with rows of changed keys is replaced by one without them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import FileScanTask, Table, Transaction

    from moldau.spark.tables.changes import Changes


def upsert(
    transaction: Transaction, table: Table, changes: Changes, *, keys: tuple[str, ...], summary: dict[str, str]
) -> None:
    """One snapshot: files without the changed rows, and the rows as they are now."""
    from pyiceberg.io.pyarrow import _dataframe_to_data_files

    changed = pa.concat_tables([changes.upserts.select(keys), changes.deletions.select(keys)])
    counter = itertools.count()
    with transaction.update_snapshot(snapshot_properties=summary).overwrite() as snapshot:

        def add(rows: pa.Table) -> None:
            if rows.num_rows:
                metadata, write_id = table.metadata, snapshot.commit_uuid
                for file in _dataframe_to_data_files(metadata, rows, table.io, write_uuid=write_id, counter=counter):
                    snapshot.append_data_file(file)

        for task, rows in _files_between(table, changed):
            untouched = _without(rows, changed, keys)
            if untouched.num_rows < rows.num_rows:
                snapshot.delete_data_file(task.file)
                add(untouched)
        add(changes.upserts)


def _files_between(table: Table, changed: pa.Table) -> Iterator[tuple[FileScanTask, pa.Table]]:
    """Files that may have a changed key, by the bounds that the table knows of them, each with its rows."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    if not changed.num_rows:
        return
    scan = table.scan(row_filter=_bounds(changed))
    reader = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    for task in scan.plan_files():
        yield task, reader.to_table([task])


def _bounds(changed: pa.Table) -> BooleanExpression:
    from pyiceberg.expressions import AlwaysTrue, And, GreaterThanOrEqual, LessThanOrEqual

    everything: BooleanExpression = AlwaysTrue()
    ranges: list[BooleanExpression] = []
    for name in changed.column_names:
        kind = changed.schema.field(name).type
        if types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind):
            bounds: dict[str, Any] = pc.min_max(changed[name]).as_py()
            ranges += [
                GreaterThanOrEqual(term=name, value=bounds["min"]),
                LessThanOrEqual(term=name, value=bounds["max"]),
            ]
    return reduce(And, ranges, everything)


def _without(rows: pa.Table, changed: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """By position: a join takes nested columns in no version of Arrow, and changes the order of rows."""
    position = "__moldau_position"
    numbered = rows.select(keys).append_column(position, pa.array(range(rows.num_rows), pa.int64()))
    kinds = pa.schema([rows.schema.field(key) for key in keys])
    left = numbered.join(changed.select(keys).cast(kinds), keys=list(keys), join_type="left anti")
    positions = left[position]
    return rows.take(positions.take(pc.sort_indices(positions)))
