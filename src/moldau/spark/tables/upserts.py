"""Upserts into lake tables by copy on write: a file with rows of changed keys is replaced by one without them.

The driver does it, and holds neither the batch nor the table: a batch that is larger than its share of memory is gone
through in several rounds, each with the keys of one share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from moldau.spark.tables.changes import changes_of
from moldau.spark.tables.data_files import MIB, DataFiles
from moldau.spark.tables.options import WriteOptions
from moldau.spark.tables.schemas import conform
from moldau.spark.tables.staging import FileStage, StagedFile

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
class StagedChanges:
    """The changes of a batch as tasks staged them: every row that came, with what happens to it."""

    stage: FileStage
    files: Sequence[StagedFile]
    schema: pa.Schema
    options: WriteOptions
    round_bytes: int = ROUND_BYTES

    @property
    def rounds(self) -> int:
        return max(1, -(-sum(file.memory_bytes for file in self.files) // self.round_bytes))

    def write_latest(self, into: DataFiles) -> None:
        """The last row of each key, unless that one deletes it."""
        for number in range(self.rounds):
            rows = pa.Table.from_batches(self._share(number, None), self.schema)
            for batch in changes_of(rows, self.options).upserts.to_batches(max_chunksize=64 * 1024):
                into.add(batch)

    def rows_to_drop(self, kept: Keeper) -> list[tuple[KeptFile, Mask]]:
        """Files with rows of changed keys, each with a bit for every row that goes."""
        found: dict[str, tuple[KeptFile, Mask]] = {}
        keys = list(self.options.keys)
        for number in range(self.rounds):
            schema = pa.schema([self.schema.field(key) for key in keys])
            rows = pa.Table.from_batches([one.select(keys) for one in self._share(number, keys)], schema)
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

    def _share(self, number: int, columns: Sequence[str] | None) -> list[pa.RecordBatch]:
        batches = (batch for file in self.files for batch in self.stage.read(file, columns))
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        shared = (conform(self._of_round(batch, number), schema) for batch in batches)
        return [batch for batch in shared if batch.num_rows]

    def _of_round(self, batch: pa.RecordBatch, number: int) -> pa.RecordBatch:
        if self.rounds == 1:
            return batch
        from pandas.util import hash_pandas_object

        hashes = hash_pandas_object(batch.select(list(self.options.keys)).to_pandas(), index=False).to_numpy()
        return batch.filter(pa.array(hashes % np.uint64(self.rounds) == number))


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
