"""Upserts into lake tables by copy on write: a file with rows of changed keys is replaced by one without them.

The driver does it, and holds neither the batch nor the table: a batch that is larger than what one round may hold is
gone through in several, each with a share of the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from moldau.spark.tables.changes import changes_of
from moldau.spark.tables.data_files import MIB, DataFiles, Layout, Partition, split_by, write_files
from moldau.spark.tables.options import WriteOptions
from moldau.spark.tables.schemas import conform
from moldau.spark.tables.staging import FileStage, StagedFile, StagingArea

# Rows of one round, as they are in memory; looking for the last row of each key takes about three times as much.
ROUND_BYTES = 128 * MIB

Mask = npt.NDArray[np.uint8]


class KeptFile(Protocol):
    """A file of the table as it is."""

    @property
    def path(self) -> str: ...

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Its rows in the same order each time."""
        ...


class Keeper(Protocol):
    def files_with(self, keys: pa.Table) -> Iterable[KeptFile]:
        """Files that may have one of these keys, by the bounds that the table knows of them."""
        ...


@dataclass(frozen=True, slots=True)
class KeyShares:
    """Rows apart by their keys, so that all rows of a key are in one share."""

    keys: tuple[str, ...]
    shares: int

    def split(self, rows: pa.Table) -> Iterator[tuple[Partition, pa.Table]]:
        from pandas.util import hash_pandas_object

        hashes = hash_pandas_object(rows.select(list(self.keys)).to_pandas(), index=False).to_numpy()
        return split_by(rows, [pa.chunked_array([pa.array(hashes % np.uint64(self.shares))])])

    def folder(self, partition: Partition) -> str:
        return f"share={partition[0]}"


@dataclass(frozen=True, slots=True)
class StagedChanges:
    """The changes of a batch as tasks staged them: every row that came, with what happens to it."""

    stage: FileStage
    files: Sequence[StagedFile]
    schema: pa.Schema
    options: WriteOptions
    # Of each round; the rows of a key are all in one of them, in the order in which they came.
    rounds: Sequence[Sequence[StagedFile]]

    @classmethod
    def of(
        cls, stage: FileStage, files: Sequence[StagedFile], schema: pa.Schema, options: WriteOptions, area: StagingArea
    ) -> StagedChanges:
        """Rows that are too many to hold are written once more, apart by their keys."""
        shares = -(-sum(file.memory_bytes for file in files) // ROUND_BYTES)
        if shares <= 1:
            return cls(stage, files, schema, options, [files])
        layout = Layout(schema, partitioning=KeyShares(options.keys, shares))
        batches = (batch for file in files for batch in stage.read(file))
        written = write_files(batches, layout, stage=stage, area=area)
        rounds = [[file for file in written if file.partition == (share,)] for share in range(shares)]
        return cls(stage, files, schema, options, rounds)

    def write_latest(self, into: DataFiles) -> None:
        """The last row of each key, unless that one deletes it."""
        for files in self.rounds:
            rows = pa.Table.from_batches(self._read(files), self.schema)
            for batch in changes_of(rows, self.options).upserts.to_batches(max_chunksize=64 * 1024):
                into.add(batch)

    def rows_to_drop(self, kept: Keeper) -> list[tuple[KeptFile, Mask]]:
        """Files with rows of changed keys, each with a bit for every row that goes."""
        found: dict[str, tuple[KeptFile, Mask]] = {}
        keys = list(self.options.keys)
        schema = pa.schema([self.schema.field(key) for key in keys])
        for files in self.rounds:
            rows = pa.Table.from_batches(self._read(files, keys), schema)
            changed = rows.group_by(keys).aggregate([])
            if not changed.num_rows:
                continue
            for file in kept.files_with(changed):
                hit = _positions_of(file, changed)
                if hit.any():
                    packed = np.packbits(hit)
                    _, known = found.get(file.path, (file, np.zeros_like(packed)))
                    found[file.path] = (file, known | packed)
        return list(found.values())

    def _read(self, files: Sequence[StagedFile], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        return (conform(batch, schema) for file in files for batch in self.stage.read(file, columns))


def write_without(files: Sequence[tuple[KeptFile, Mask]], into: DataFiles, schema: pa.Schema) -> None:
    """The rows of these files that stay."""
    for file, mask in files:
        dropped = np.unpackbits(mask).astype(bool)
        at = 0
        for batch in file.batches():
            stays = ~dropped[at : at + batch.num_rows]
            at += batch.num_rows
            into.add(conform(batch.filter(pa.array(stays)), schema))


def _positions_of(file: KeptFile, changed: pa.Table) -> npt.NDArray[np.bool_]:
    """Which rows of a file have one of these keys."""
    position, keys = "__moldau_position", changed.column_names
    schema = changed.schema
    batches = [conform(batch.select(keys), schema) for batch in file.batches(keys)]
    rows = pa.Table.from_batches(batches, schema)
    numbered = rows.append_column(position, pa.array(np.arange(rows.num_rows)))
    hit = np.zeros(rows.num_rows, dtype=bool)
    hit[numbered.join(changed, keys=keys, join_type="left semi")[position].to_numpy()] = True
    return hit
