"""Rows on their way: files that tasks write and that no reader of the table sees until the driver commits them.

A batch has a folder of its own, named after the query and the batch's number. A batch that is run again writes to the
same folder, so that whoever commits it finds there what a killed attempt left, and removes it.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql.datasource import WriterCommitMessage

# Readers take a row group at a time: groups of this size are quick to scan and small enough to hold in a task.
GROUP_ROWS = 128 * 1024
GROUP_BYTES = 64 << 20
FOLDER = "moldau"
ATTEMPT_END = "-"


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
    file: StagedFile | None = None
    table: StagedTable | None = None


def files_of(staged: Sequence[Staged]) -> list[StagedFile]:
    """In the order of the tasks; a task without rows has no file."""
    return [message.file for message in staged if message.file is not None]


def tables_of(staged: Sequence[Staged]) -> list[StagedTable]:
    return [message.table for message in staged if message.table is not None]


def row_groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Spark's batches are small: a group for each would make files that are slow to read."""
    held: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for batch in batches:
        held.append(batch)
        rows, size_bytes = rows + batch.num_rows, size_bytes + batch.nbytes
        if rows >= GROUP_ROWS or size_bytes >= GROUP_BYTES:
            yield pa.Table.from_batches(held, schema)
            held, rows, size_bytes = [], 0, 0
    if rows:
        yield pa.Table.from_batches(held, schema)


@dataclass(frozen=True, slots=True)
class FileStage:
    """Staged Parquet files below one root of a file system that driver and executors share."""

    filesystem: fs.FileSystem
    root: str

    def write(
        self,
        batches: Iterable[pa.RecordBatch],
        schema: pa.Schema,
        *,
        area: StagingArea,
        statistics: Callable[[pq.FileMetaData], str] = lambda _: "",
    ) -> StagedFile | None:
        """One file for the task; none if it has no rows."""
        groups = row_groups(batches, schema)
        first = next(groups, None)
        if first is None:
            return None
        path = f"{area.folder}/{area.attempt}{ATTEMPT_END}{uuid.uuid4().hex}.parquet"
        self.filesystem.create_dir(self._full(area.folder), recursive=True)
        try:
            metadata = self._write_groups(path, first, groups)
        except BaseException:
            self.delete([path])
            raise
        size_bytes = self.filesystem.get_file_info(self._full(path)).size
        return StagedFile(path, size_bytes, metadata.num_rows, statistics(metadata))

    def _write_groups(self, path: str, first: pa.Table, more: Iterator[pa.Table]) -> pq.FileMetaData:
        footers: list[pq.FileMetaData] = []
        with (
            self.filesystem.open_output_stream(self._full(path)) as stream,
            pq.ParquetWriter(stream, first.schema, compression="zstd", metadata_collector=footers) as writer,
        ):
            writer.write_table(first)
            for group in more:
                writer.write_table(group)
        return footers[0]

    def read(self, files: Sequence[StagedFile], schema: pa.Schema) -> pa.Table:
        """All staged rows, in the order of the tasks and of the rows within each."""
        tables = [pq.read_table(self._full(file.path), filesystem=self.filesystem, schema=schema) for file in files]
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def delete(self, paths: Iterable[str]) -> None:
        """A file that is gone already, or can't be removed, is nobody's loss: no reader knows it."""
        for path in paths:
            try:
                self.filesystem.delete_file(self._full(path))
            except OSError:
                continue

    def check(self, files: Sequence[StagedFile], area: StagingArea) -> None:
        """All that was staged is there: a table would name a file that is gone, and a reader would stumble over it."""
        for file, info in zip(
            files, self.filesystem.get_file_info([self._full(one.path) for one in files]), strict=True
        ):
            if info.size != file.size_bytes:
                raise StagedRowsLost(area, staged=file.rows, left=0)

    def of_attempt(self, area: StagingArea) -> list[str]:
        """What this attempt at the batch has staged, whether its tasks came to an end or not."""
        paths = self.leftovers(area, kept=())
        return [path for path in paths if path.rpartition("/")[2].partition(ATTEMPT_END)[0] == area.attempt]

    def leftovers(self, area: StagingArea, kept: Iterable[str]) -> list[str]:
        """Files of killed or superseded tasks of a batch that has just been committed, by whichever attempt."""
        selector = fs.FileSelector(self._full(area.folder), allow_not_found=True)
        found = (info.base_name for info in self.filesystem.get_file_info(selector) if info.type == fs.FileType.File)
        keep = set(kept)
        return [path for name in found if (path := f"{area.folder}/{name}") not in keep]

    def _full(self, path: str) -> str:
        return f"{self.root}/{path}" if self.root else path
