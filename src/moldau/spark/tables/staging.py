"""Rows on their way: files that tasks write and that no reader of the table sees until the driver commits them.

A batch has a folder of its own, named after the query and the batch's number. A batch that is run again writes to the
same folder, so that whoever commits it finds there what a killed attempt left, and removes it.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql.datasource import WriterCommitMessage

FOLDER = "moldau"
ATTEMPT_END = "-"
ROWS_AT_ONCE = 16 * 1024


@dataclass(frozen=True, slots=True)
class StagingArea:
    """Where the rows of one write gather.

    A numbered batch counts once, and comes back to its area if it is run again. A write without a number counts
    whenever it is made, in an area that no other write has.
    """

    query_id: str
    batch: int | None
    # Two drivers may be at the same batch, one of them thought dead: what it gives up is its own and nobody else's.
    attempt: str = ""

    @property
    def label(self) -> str:
        """A query's name in paths and table names, whatever characters its id has."""
        return hashlib.sha256(self.query_id.encode()).hexdigest()[:12]

    @property
    def folder(self) -> str:
        return f"{FOLDER}/{self.label}/{'unnumbered' if self.batch is None else self.batch}"

    def new_path(self, subfolder: str = "") -> str:
        inner = f"{subfolder}/" if subfolder else ""
        return f"{self.folder}/{inner}{self.attempt}{ATTEMPT_END}{uuid.uuid4().hex}.parquet"


def unnumbered_area() -> StagingArea:
    return StagingArea(uuid.uuid4().hex, None)


class StagedRowsLost(RuntimeError):
    """Rows that a task staged are not there any more; the batch has to be run again."""

    def __init__(self, area: StagingArea, *, staged: int, left: int) -> None:
        batch = "this write" if area.batch is None else f"batch {area.batch}"
        super().__init__(
            f"a task staged {staged} rows for {batch}, and {left} are left: the database crashed in between, or"
            " somebody removed them. Nothing of the batch is in the table; run it again"
        )


@dataclass(frozen=True, slots=True)
class StagedFile:
    path: str
    size_bytes: int
    rows: int
    memory_bytes: int
    partition: tuple[Any, ...] = ()
    statistics: str = ""


@dataclass(frozen=True, slots=True)
class StagedTable:
    """Where rows wait in a database."""

    name: str
    rows: int


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """What one task has ready: nothing if it had no rows. The counts are what a commit has to find."""

    area: StagingArea
    files: tuple[StagedFile, ...] = ()
    table: StagedTable | None = None


def files_of(staged: Sequence[Staged]) -> list[StagedFile]:
    """In the order of the tasks; a task without rows has none."""
    return [file for message in staged for file in message.files]


def tables_of(staged: Sequence[Staged]) -> list[StagedTable]:
    return [message.table for message in staged if message.table is not None]


@dataclass(frozen=True, slots=True)
class FileStage:
    """Staged Parquet files below one root of a file system that driver and executors share."""

    filesystem: fs.FileSystem
    root: str

    def open_new(self, path: str) -> pa.NativeFile:
        full = self._full(path)
        if not isinstance(self.filesystem, fs.S3FileSystem):  # it has no folders, and would keep an object for each
            self.filesystem.create_dir(full.rpartition("/")[0], recursive=True)
        return self.filesystem.open_output_stream(full)

    def read(self, file: StagedFile, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """In the order of the rows, and never more than a little at once."""
        with self.filesystem.open_input_file(self._full(file.path)) as source, pq.ParquetFile(source) as opened:
            yield from opened.iter_batches(ROWS_AT_ONCE, columns=columns, use_threads=False)

    def delete(self, paths: Iterable[str]) -> None:
        """A file that is gone already, or can't be removed, is nobody's loss: no reader knows it."""
        for path in paths:
            try:
                self.filesystem.delete_file(self._full(path))
            except OSError:
                continue

    def check(self, files: Sequence[StagedFile], area: StagingArea) -> None:
        """All that was staged is there: a table would name a file that is gone, and a reader would stumble over it."""
        found = self.filesystem.get_file_info([self._full(file.path) for file in files])
        for file, info in zip(files, found, strict=True):
            if info.size != file.size_bytes:
                raise StagedRowsLost(area, staged=file.rows, left=0)

    def of_attempt(self, area: StagingArea) -> list[str]:
        """What this attempt at the batch has staged, whether its tasks came to an end or not."""
        paths = self.leftovers(area, kept=())
        return [path for path in paths if path.rpartition("/")[2].partition(ATTEMPT_END)[0] == area.attempt]

    def leftovers(self, area: StagingArea, kept: Collection[str]) -> list[str]:
        """Files of killed or superseded tasks of a batch that has just been committed, by whichever attempt."""
        folder = self._full(area.folder)
        selector = fs.FileSelector(folder, allow_not_found=True, recursive=True)
        files = (info for info in self.filesystem.get_file_info(selector) if info.type == fs.FileType.File)
        # Some file systems name what they list from their own root, others from where they were asked.
        found = (area.folder + info.path.partition(area.folder)[2] for info in files)
        return [path for path in found if path not in kept]

    def _full(self, path: str) -> str:
        return f"{self.root}/{path}" if self.root else path
