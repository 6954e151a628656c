"""How far a query is by its checkpoint, in a folder of this machine or in an object store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.spark.object_store import ObjectStore
from tests.spark.tables.streams import forget_newest_commit


class Checkpoint(Protocol):
    @property
    def url(self) -> str: ...

    def batches(self, log: str) -> list[int]:
        """Numbers in one of its logs: a batch is in `offsets` before it begins, and in `commits` after its end."""
        ...

    def forget_newest_commit(self) -> None:
        """As if the driver had died before it noted the end of its last batch."""
        ...


@dataclass(frozen=True, slots=True)
class LocalCheckpoint:
    path: Path

    @property
    def url(self) -> str:
        return str(self.path)

    def batches(self, log: str) -> list[int]:
        folder = self.path / log
        return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit()) if folder.exists() else []

    def forget_newest_commit(self) -> None:
        forget_newest_commit(self.path)


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    store: ObjectStore
    bucket: str
    folder: str

    @property
    def url(self) -> str:
        return f"s3a://{self.bucket}/{self.folder}"

    def batches(self, log: str) -> list[int]:
        names = (name.rpartition("/")[2] for name in self.store.names(self.bucket, f"{self.folder}/{log}/"))
        return sorted(int(name) for name in names if name.isdigit())

    def forget_newest_commit(self) -> None:
        self.store.delete(self.bucket, f"{self.folder}/commits/{max(self.batches('commits'))}")
