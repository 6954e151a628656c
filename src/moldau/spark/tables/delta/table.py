"""A Delta table through deltalake: its files by the log, and each batch once by the log's application transactions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs, types
from pyarrow.dataset import ParquetFragmentScanOptions

from moldau.core.clock import SystemClock
from moldau.spark.formats.type_names import quoted_name
from moldau.spark.tables.changes import changes_of
from moldau.spark.tables.data_files import Layout, OnePartition, Partition, split_by
from moldau.spark.tables.delta.log import partition_text, statistics_of
from moldau.spark.tables.options import Mode
from moldau.spark.tables.staging import ROWS_AT_ONCE, FileStage, StagedFile

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

    from moldau.spark.tables.lakes import FileChange
    from moldau.spark.tables.upserts import KeptFile, StagedChanges
    from moldau.spark.tables.writing import Step

# Tables that ask no more of a reader or writer than this have rows in files and nothing else.
PLAIN_READER_VERSION = 1
PLAIN_WRITER_VERSION_MAX = 2
PLAIN_FEATURES = frozenset({"appendOnly", "timestampNtz"})
DELETED = "__moldau_deleted"


class OutsideFile(ValueError):
    """A file that is not the table's own, as a shallow clone has them, can't be replaced."""


@dataclass(frozen=True, slots=True)
class ColumnPartitions:
    """Partitions by the values of columns."""

    columns: tuple[str, ...]

    def split(self, rows: pa.Table) -> Iterator[tuple[Partition, pa.Table]]:
        return split_by(rows, [rows[name] for name in self.columns])

    def folder(self, partition: Partition) -> str:
        """For people to look at: what counts is in the log, so that unusual characters need no care."""
        pairs = zip(self.columns, partition, strict=True)
        texts = (f"{name}={'null' if value is None else partition_text(value)}" for name, value in pairs)
        return "/".join(re.sub(r"[^\w.=-]", "_", text, flags=re.ASCII)[:100] for text in texts)


@dataclass(frozen=True, slots=True)
class DeltaLake:
    uri: str
    storage: Mapping[str, str] = field(repr=False)
    layout: Layout
    takes_files: bool

    def conflicts(self) -> tuple[type[Exception], ...]:
        from deltalake.exceptions import CommitFailedError

        return (CommitFailedError,)

    def stage(self) -> FileStage:
        from deltalake.fs import DeltaStorageHandler

        return FileStage(fs.PyFileSystem(DeltaStorageHandler(self.uri, dict(self.storage) or None)), root="")

    def open(self) -> OpenedDelta:
        return OpenedDelta(opened(self.uri, self.storage))


def opened(uri: str, storage: Mapping[str, str]) -> DeltaTable:
    from deltalake import DeltaTable

    return DeltaTable(uri, storage_options=dict(storage) or None)


def layout_of(table: DeltaTable, schema: pa.Schema, file_bytes: int) -> Layout:
    columns = tuple(table.metadata().partition_columns)
    return Layout(
        schema,
        left_out=columns,
        partitioning=ColumnPartitions(columns) if columns else OnePartition(),
        file_bytes=file_bytes,
        statistics=partial(statistics_of, schema=schema),
    )


def has_plain_files(table: DeltaTable) -> bool:
    """Whether the rows are those of the files; deletion vectors and mapped columns make it more complicated."""
    protocol = table.protocol()
    if protocol.min_reader_version == PLAIN_READER_VERSION:
        return True
    return protocol.reader_features is not None and set(protocol.reader_features) <= PLAIN_FEATURES


def takes_files(table: DeltaTable) -> bool:
    """Whether files of rows are all there is to a change: no constraints, generated columns or feeds of changes."""
    protocol = table.protocol()
    features = set(protocol.writer_features or ()) - PLAIN_FEATURES
    if protocol.min_writer_version > PLAIN_WRITER_VERSION_MAX and (features or protocol.writer_features is None):
        return False
    invariants = any("delta.invariants" in (column.metadata or {}) for column in table.schema().fields)
    return has_plain_files(table) and not invariants


@dataclass(frozen=True, slots=True)
class DeltaFile:
    """A file that the log names, and its rows."""

    path: str
    size_bytes: int
    fragment: Any
    schema: pa.Schema

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        names = self.schema.names if columns is None else list(columns)
        # What is read ahead is held in memory, and a rewritten file may have large rows.
        yield from self.fragment.to_batches(
            schema=self.schema,
            columns=names,
            batch_size=ROWS_AT_ONCE,
            batch_readahead=1,
            use_threads=False,
            fragment_scan_options=ParquetFragmentScanOptions(pre_buffer=False),
        )


@dataclass(frozen=True, slots=True)
class OpenedDelta:
    table: DeltaTable

    def is_applied(self, step: Step) -> bool:
        if step.batch is None:
            return False
        newest = self.table.transaction_version(step.query_id)
        return newest is not None and newest >= step.batch

    def columns(self) -> pa.Schema:
        return pa.schema(self.table.schema().to_arrow())

    def file_names(self) -> set[str]:
        return {uri.rpartition("/")[2] for uri in self.table.file_uris()}

    def files_with(self, keys: pa.Table) -> Iterator[DeltaFile]:
        ranges = [pc.field(name) >= low for name, low, _ in _bounds(keys)]
        ranges += [pc.field(name) <= high for name, _, high in _bounds(keys)]
        yield from self.files(reduce(lambda one, other: one & other, ranges) if ranges else None)

    def files(self, condition: pc.Expression | None = None) -> Iterator[DeltaFile]:
        dataset = self.table.to_pyarrow_dataset()
        added = pa.table(self.table.get_add_actions()).select(["path", "size_bytes"]).to_pylist()
        # The log has paths as addresses do; a file system, and an action that is yet to be written, as they are.
        sizes = {unquote(action["path"]): action["size_bytes"] for action in added}
        for fragment in dataset.get_fragments(filter=condition):
            if fragment.path not in sizes:
                raise OutsideFile(
                    f"the table at {self.table.table_uri} has a file outside of its folder: {fragment.path}"
                )
            yield DeltaFile(fragment.path, sizes[fragment.path], fragment, dataset.schema)

    def replace(self, change: FileChange, step: Step) -> None:
        removed = [_remove_action(file) for file in change.removed]
        columns = self.table.metadata().partition_columns
        self.table.create_write_transaction(
            [*removed, *(add_action(file, columns) for file in change.added)],
            "overwrite" if change.everything else "append",
            self.table.schema(),
            columns,
            # What is replaced was read: a commit of somebody else means to read it again.
            commit_properties=commit_properties(step, exactly_here=bool(removed) or change.everything),
        )

    def write_through(self, changes: StagedChanges, step: Step) -> None:
        from deltalake import write_deltalake

        read = (batch for file in changes.files for batch in changes.stage.read(file))
        if changes.options.mode is Mode.APPEND:
            rows: Any = pa.RecordBatchReader.from_batches(changes.schema, read)
        else:
            found = changes_of(pa.Table.from_batches(read, changes.schema), changes.options)
            if not step.overwrite:
                self._merge(_marked(found.upserts, found.deletions), changes, step)
                return
            rows = found.upserts
        if step.overwrite:
            write_deltalake(self.table, rows, mode="overwrite", commit_properties=commit_properties(step))
        else:
            write_deltalake(self.table, rows, mode="append", commit_properties=commit_properties(step))

    def _merge(self, marked: pa.Table, changes: StagedChanges, step: Step) -> None:
        columns = {quoted_name(name): f"change.{quoted_name(name)}" for name in self.columns().names}
        same_key = " AND ".join(f"kept.{quoted_name(key)} = change.{quoted_name(key)}" for key in changes.options.keys)
        merger = self.table.merge(
            marked, same_key, source_alias="change", target_alias="kept", commit_properties=commit_properties(step)
        )
        (
            merger.when_matched_delete(predicate=f"change.{DELETED}")
            .when_matched_update(columns, predicate=f"NOT change.{DELETED}")
            .when_not_matched_insert(columns, predicate=f"NOT change.{DELETED}")
            .execute()
        )


def _bounds(keys: pa.Table) -> list[tuple[str, Any, Any]]:
    """Of the columns that the log may have bounds of."""
    plain = [column.name for column in keys.schema if types.is_integer(column.type) or types.is_string(column.type)]
    found = [(name, pc.min_max(keys[name])) for name in plain]
    return [(name, both["min"], both["max"]) for name, both in found]


def _marked(upserts: pa.Table, deletions: pa.Table) -> pa.Table:
    marked = [
        rows.append_column(DELETED, pa.array([deleted] * rows.num_rows, pa.bool_()))
        for rows, deleted in ((upserts, False), (deletions, True))
    ]
    return pa.concat_tables(marked)


def commit_properties(step: Step, *, exactly_here: bool = False) -> CommitProperties:
    from deltalake import CommitProperties, Transaction

    retries = 0 if exactly_here else None
    if step.batch is None:
        return CommitProperties(max_commit_retries=retries)
    applied = Transaction(step.query_id, step.batch, SystemClock().now_ms())
    return CommitProperties(max_commit_retries=retries, app_transactions=[applied])


def add_action(file: StagedFile, columns: Sequence[str]) -> AddAction:
    from deltalake.transaction import AddAction

    values = {name: partition_text(value) for name, value in zip(columns, file.partition, strict=True)}
    return AddAction(file.path, file.size_bytes, values, SystemClock().now_ms(), True, file.statistics)


def _remove_action(file: KeptFile) -> RemoveAction:
    from deltalake.transaction import RemoveAction

    assert isinstance(file, DeltaFile), "a table gets back the files that it gave"
    return RemoveAction(file.path, True, SystemClock().now_ms(), file.size_bytes)
