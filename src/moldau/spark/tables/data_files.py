"""Rows into Parquet files: a file has the rows of one partition, and ends when it is as large as it should be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from moldau.spark.tables.options import FILE_BYTES_DEFAULT
from moldau.spark.tables.staging import FileStage, StagedFile, StagingArea

MIB = 1 << 20
# Readers take a row group at a time: groups of this size are quick to scan and small enough to hold in a task.
GROUP_ROWS = 128 * 1024
GROUP_BYTES = 64 * MIB
# What a task holds while it waits for groups of many partitions to fill.
HELD_BYTES_MAX = 2 * GROUP_BYTES
# Each open file has buffers of its own; rows of a partition whose file was closed open another.
OPEN_FILES_MAX = 64

Partition = tuple[Any, ...]


class Partitioning(Protocol):
    """Which rows of a table have to be in different files."""

    def split(self, rows: pa.Table) -> Iterator[tuple[Partition, pa.Table]]: ...

    def folder(self, partition: Partition) -> str: ...


@dataclass(frozen=True, slots=True)
class OnePartition:
    def split(self, rows: pa.Table) -> Iterator[tuple[Partition, pa.Table]]:
        yield (), rows

    def folder(self, partition: Partition) -> str:
        del partition
        return ""


def split_by(rows: pa.Table, keys: Sequence[pa.ChunkedArray]) -> Iterator[tuple[Partition, pa.Table]]:
    """Rows with the same values of all keys, in the order in which they came."""
    encoded = [_combined(key).dictionary_encode(null_encoding="encode") for key in keys]
    code = np.zeros(rows.num_rows, dtype=np.int64)
    for array in encoded:
        code = code * len(array.dictionary) + array.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    for start, end in zip(starts, [*starts[1:], rows.num_rows], strict=True):
        first = int(order[start])
        partition = tuple(array.dictionary[array.indices[first].as_py()].as_py() for array in encoded)
        yield partition, rows.take(pa.array(order[start:end]))


def _combined(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of a table are laid out in files. It travels to the executors."""

    schema: pa.Schema
    # Columns that no file has, as the table names their values for each file as a whole.
    left_out: tuple[str, ...] = ()
    partitioning: Partitioning = field(default_factory=OnePartition)
    file_bytes: int = FILE_BYTES_DEFAULT
    statistics: Callable[[pq.FileMetaData, frozenset[str]], str] | None = None

    @property
    def group_bytes(self) -> int:
        return min(GROUP_BYTES, self.file_bytes)


class _Group:
    """Rows of one partition that wait to become a row group: Spark's batches are too small to be one each."""

    def __init__(self) -> None:
        self.tables: list[pa.Table] = []
        self.rows = 0
        self.size_bytes = 0

    def add(self, rows: pa.Table) -> None:
        self.tables.append(rows)
        self.rows += rows.num_rows
        self.size_bytes += rows.nbytes


class _OpenFile:
    def __init__(self, stage: FileStage, path: str, schema: pa.Schema) -> None:
        self.path = path
        self.memory_bytes = 0
        self._stage = stage
        self._footers: list[pq.FileMetaData] = []
        self._with_nan: set[str] = set()
        self._stream = stage.open_new(path)
        self._writer = pq.ParquetWriter(self._stream, schema, compression="zstd", metadata_collector=self._footers)

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows)
        self.memory_bytes += rows.nbytes
        for column in rows.schema:
            # Footers leave them out of the bounds, and to many readers they are greater than any number.
            if types.is_floating(column.type) and pc.any(pc.is_nan(rows[column.name])).as_py():
                self._with_nan.add(column.name)

    @property
    def size_bytes(self) -> int:
        return int(self._stream.tell())

    def close(self, partition: Partition, layout: Layout) -> StagedFile:
        self._writer.close()
        size_bytes = self.size_bytes
        self._stream.close()
        footer = self._footers[0]
        statistics = "" if layout.statistics is None else layout.statistics(footer, frozenset(self._with_nan))
        return StagedFile(self.path, size_bytes, footer.num_rows, self.memory_bytes, partition, statistics)

    def abandon(self) -> None:
        self._writer.close()
        self._stream.close()
        self._stage.delete([self.path])


class DataFiles:
    """Files in the making: rows are added as they come, and the files are known at the end."""

    def __init__(self, stage: FileStage, area: StagingArea, layout: Layout) -> None:
        self._stage, self._area, self._layout = stage, area, layout
        names = [name for name in layout.schema.names if name not in layout.left_out]
        self._stored = pa.schema([layout.schema.field(name) for name in names])
        self._groups: dict[Partition, _Group] = {}
        self._held_bytes = 0
        self._open: dict[Partition, _OpenFile] = {}  # the one that was written to last comes last
        self._finished: list[StagedFile] = []

    def add(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        for partition, rows in self._layout.partitioning.split(pa.Table.from_batches([batch], self._layout.schema)):
            group = self._groups.setdefault(partition, _Group())
            held_before = group.size_bytes
            group.add(rows.select(self._stored.names))
            self._held_bytes += group.size_bytes - held_before
            if group.rows >= GROUP_ROWS or group.size_bytes >= self._layout.group_bytes:
                self._write_group(partition)
        while self._held_bytes > HELD_BYTES_MAX:
            self._write_group(max(self._groups, key=lambda each: self._groups[each].size_bytes))

    def finish(self) -> list[StagedFile]:
        for partition in list(self._groups):
            self._write_group(partition)
        for partition in list(self._open):
            self._close(partition)
        return self._finished

    def abandon(self) -> None:
        for opened in self._open.values():
            opened.abandon()
        self._stage.delete(file.path for file in self._finished)

    def _write_group(self, partition: Partition) -> None:
        group = self._groups.pop(partition)
        self._held_bytes -= group.size_bytes
        opened = self._open.pop(partition, None)
        if opened is None:
            path = self._area.new_path(self._layout.partitioning.folder(partition))
            opened = _OpenFile(self._stage, path, self._stored)
        self._open[partition] = opened
        opened.write(pa.concat_tables(group.tables).combine_chunks())
        if opened.size_bytes >= self._layout.file_bytes:
            self._close(partition)
        elif len(self._open) > OPEN_FILES_MAX:
            self._close(next(iter(self._open)))

    def _close(self, partition: Partition) -> None:
        self._finished.append(self._open.pop(partition).close(partition, self._layout))


def write_files(
    batches: Iterable[pa.RecordBatch], layout: Layout, *, stage: FileStage, area: StagingArea
) -> list[StagedFile]:
    """None if there are no rows; none are left behind if it fails."""
    files = DataFiles(stage, area, layout)
    try:
        for batch in batches:
            files.add(batch)
        return files.finish()
    except BaseException:
        files.abandon()
        raise
