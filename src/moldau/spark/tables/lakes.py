"""Tables of files: tasks write files where the table keeps its own, and one commit on the driver names them.

What Delta and Iceberg have in common is here: the commit that is tried again when another writer came first, the batch
that counts once, upserts, and the removal of what nobody needs. What differs is behind `Lake` and `OpenedTable`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from moldau.spark.tables.changes import check_keys
from moldau.spark.tables.data_files import DataFiles, Layout, write_files
from moldau.spark.tables.options import Mode, WriteOptions
from moldau.spark.tables.schemas import conform
from moldau.spark.tables.staging import FileStage, Staged, StagedFile, StagedRowsLost, StagingArea, files_of
from moldau.spark.tables.upserts import Keeper, KeptFile, StagedChanges, write_without
from moldau.spark.tables.writing import Step

# Another writer's commit may come first; each attempt looks at the table anew.
ATTEMPTS_MAX = 10


class ColumnsChanged(RuntimeError):
    """Somebody changed the table while a batch was written for it; run again, the batch fits or is refused."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """Files that a commit adds to a table and removes from it."""

    added: Sequence[StagedFile]
    removed: Sequence[KeptFile] = ()
    everything: bool = False  # all that the table has is removed


class OpenedTable(Keeper, Protocol):
    """A table as it is at one moment. A change to it fails if the table has changed since in a way that matters."""

    def is_applied(self, step: Step) -> bool: ...

    def columns(self) -> pa.Schema: ...

    def file_names(self) -> set[str]:
        """Of all files that the table has at this moment, without their folders."""
        ...

    def replace(self, change: FileChange, step: Step) -> None: ...

    def write_through(self, changes: StagedChanges, step: Step) -> None:
        """For a table that asks more of a writer than files: its library takes the rows themselves."""
        ...


class Lake(Protocol):
    """Where a table is and how its files look. It travels to the executors: nothing is open in it."""

    @property
    def layout(self) -> Layout: ...

    @property
    def takes_files(self) -> bool: ...

    def conflicts(self) -> tuple[type[Exception], ...]:
        """What a commit raises when another came first."""
        ...

    def stage(self) -> FileStage: ...

    def open(self) -> OpenedTable: ...


@dataclass(frozen=True, slots=True)
class LakeTarget:
    """A table of files to write to."""

    lake: Lake
    options: WriteOptions

    def stage(self, batches: Iterable[pa.RecordBatch], area: StagingArea) -> Staged:
        layout = self.lake.layout if self._adds_staged_files() else Layout(self._staged_schema())
        files = write_files(self._conformed(batches, layout.schema), layout, stage=self.lake.stage(), area=area)
        return Staged(area, tuple(files))

    def apply(self, staged: Sequence[Staged], step: Step) -> None:
        files, stage = files_of(staged), self.lake.stage()
        if not files and not step.overwrite:
            return
        changes: StagedChanges | None = None
        for attempt in range(ATTEMPTS_MAX):
            table = self.lake.open()
            if table.is_applied(step):
                self._remove_unnamed(table, sorted({*(file.path for file in files), *stage.of_attempt(step.area)}))
                return
            try:
                stage.check(files, step.area)
                changes = changes or self._changes(files, step)
                kept = self._commit(table, changes, step)
                break
            except self.lake.conflicts():
                if attempt == ATTEMPTS_MAX - 1:
                    raise
            except (OSError, StagedRowsLost):
                # Another driver with the same batch removes what all attempts at it have staged, once it counts.
                if not self.lake.open().is_applied(step):
                    raise
                return
        # What is left is in the way of nobody, and a failure to remove it is no failure.
        with contextlib.suppress(OSError):
            stage.delete(stage.leftovers(step.area, kept))

    def discard(self, staged: Sequence[Staged], area: StagingArea) -> None:
        paths = {*(file.path for file in files_of(staged)), *self.lake.stage().of_attempt(area)}
        self._remove_unnamed(self.lake.open(), sorted(paths))

    def _remove_unnamed(self, table: OpenedTable, paths: Sequence[str]) -> None:
        """A commit whose end nobody saw may have happened: files that the table names stay."""
        named = table.file_names()
        self.lake.stage().delete(path for path in paths if path.rpartition("/")[2] not in named)

    def _changes(self, files: Sequence[StagedFile], step: Step) -> StagedChanges:
        stage, schema = self.lake.stage(), self._staged_schema()
        if self.options.mode is Mode.UPSERT and self.lake.takes_files:
            return StagedChanges.of(stage, files, schema, self.options, step.area)
        return StagedChanges(stage, files, schema, self.options, [files])

    def _commit(self, table: OpenedTable, changes: StagedChanges, step: Step) -> set[str]:
        """Returns the files below the staging area that are the table's from now on."""
        _check_unchanged(table.columns(), self.lake.layout.schema)
        if not self.lake.takes_files:
            table.write_through(changes, step)
            return set()
        change = FileChange(changes.files, everything=step.overwrite)
        if not self._adds_staged_files():
            change = self._merged(table, changes, step)
        table.replace(change, step)
        return {file.path for file in change.added}

    def _merged(self, table: OpenedTable, changes: StagedChanges, step: Step) -> FileChange:
        files = DataFiles(self.lake.stage(), step.area, self.lake.layout)
        try:
            dropped = [] if step.overwrite else changes.rows_to_drop(table)
            write_without(dropped, files, self.lake.layout.schema)
            changes.write_latest(files)
            return FileChange(files.finish(), [file for file, _ in dropped], everything=step.overwrite)
        except BaseException:
            files.abandon()
            raise

    def _conformed(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            check_keys(batch, self.options.keys)
            yield conform(batch, schema)

    def _staged_schema(self) -> pa.Schema:
        schema, column = self.lake.layout.schema, self.options.operation_column
        return schema if column is None else schema.append(pa.field(column, pa.string()))

    def _adds_staged_files(self) -> bool:
        return self.lake.takes_files and self.options.mode is Mode.APPEND


def _check_unchanged(table: pa.Schema, staged: pa.Schema) -> None:
    """Somebody may have changed the table's columns since the tasks of this batch looked."""
    changed = [field.name for field in staged if field.name not in table.names or table.field(field.name) != field]
    if changed:
        names = ", ".join(repr(name) for name in changed)
        raise ColumnsChanged(f"column {names} of the table has changed while this batch was written; run it again")
