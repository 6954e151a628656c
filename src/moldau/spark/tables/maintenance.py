"""Care for tables: what one is made of, small files into large ones, and the removal of what nobody needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from moldau.spark.option_values import OptionError
from moldau.spark.tables.databases.table_names import POSTGRESQL_SCHEMES, SQLITE_SCHEMES


class NotMaintained(ValueError):
    """Something that this kind of table doesn't need, or that can't be done to it."""


@dataclass(frozen=True, slots=True)
class Description:
    format: str
    location: str
    state: str  # the version or snapshot that these figures are of
    columns: Sequence[tuple[str, str]]
    partitions: Sequence[str]
    rows: int
    files: int | None = None
    size_bytes: int | None = None
    # Batches that count, by their queries' ids; a Delta log tells none unless it is asked for one.
    queries: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Optimized:
    files_before: int
    files_after: int


@dataclass(frozen=True, slots=True)
class Vacuumed:
    files: Sequence[str]
    snapshots: int = 0


class MaintainedTable(Protocol):
    def describe(self) -> Description: ...

    def optimize(self, file_bytes: int | None) -> Optimized: ...

    def vacuum(self, *, older_than_ms: int, dry_run: bool) -> Vacuumed: ...


def maintained_table(url: str, table: str | None, options: Mapping[str, str]) -> MaintainedTable:
    """A table by its address: of a database or a warehouse with its name, else one of Delta."""
    from moldau.spark.tables.databases.target import readable_database
    from moldau.spark.tables.delta.maintenance import MaintainedDelta
    from moldau.spark.tables.delta.target import readable_delta
    from moldau.spark.tables.iceberg.maintenance import MaintainedIceberg
    from moldau.spark.tables.iceberg.target import readable_iceberg

    if url.startswith((*POSTGRESQL_SCHEMES, *SQLITE_SCHEMES)):
        from moldau.spark.tables.databases.maintenance import MaintainedDatabase

        return MaintainedDatabase(readable_database({"url": url, "dbtable": _named(table), **options}))
    if table is None and not _catalog_file(url).is_file():
        return MaintainedDelta(readable_delta({"path": url, **options}))
    named = {"warehouse": url, "table": _named(table), **options}
    # Reading makes no catalog where there was none.
    if _is_local(url) and not {"catalog", "catalog.uri"} & {*options} and not _catalog_file(url).is_file():
        raise OptionError(f"there is no Iceberg warehouse at {url}")
    return MaintainedIceberg(readable_iceberg(named))


def _is_local(url: str) -> bool:
    return "://" not in url or url.startswith("file://")


def _catalog_file(url: str) -> Path:
    return Path(url.removeprefix("file://"), "catalog.db")


def _named(table: str | None) -> str:
    if table is None:
        raise OptionError("a database or a warehouse has many tables: name one with --table")
    return table
