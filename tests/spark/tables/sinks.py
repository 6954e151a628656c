"""The four kinds of tables, told apart in one place: how each is written to, read and looked into."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adbc_driver_manager.dbapi import Connection
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyspark.sql.types import StructType

from moldau.spark.tables.databases.engines import database_of
from moldau.spark.tables.databases.target import sql_target
from moldau.spark.tables.delta.target import delta_target
from moldau.spark.tables.iceberg.target import catalog_properties, iceberg_target
from moldau.spark.tables.writing import Target

KINDS = ("delta", "iceberg", "sqlite", "postgresql")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sink:
    """One table somewhere below a folder of the test, or in a database of the test run."""

    kind: str
    format: str
    options: dict[str, str]
    target_of: Callable[[dict[str, str], StructType], Target]

    def target(self, schema: StructType, **more: str) -> Target:
        """As Spark asks for it: with names of options in lower case."""
        given = {**self.options, **more}
        return self.target_of({name.lower(): value for name, value in given.items()}, schema)

    def rows(self) -> list[Row]:
        return sorted(self._read(), key=lambda row: [str(value) for value in row.values()])

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in self._read())

    def staged(self) -> list[str]:
        """What waits for a commit, or was left behind by one that never came."""
        if self.kind == "postgresql":
            names = self._query("select tablename from pg_tables where starts_with(tablename, 'moldau_staging_')")
            return [row["tablename"] for row in names]
        named = self._files_of_the_table()
        return [str(path) for path in self.folder().rglob("moldau/**/*.parquet") if path.name not in named]

    def folder(self) -> Path:
        if self.kind == "sqlite":
            return Path(self.options["url"].removeprefix("sqlite://") + "-staging")
        if self.kind == "iceberg":
            return Path(self.options["warehouse"], *self.options["table"].split("."))
        return Path(self.options["path"])

    def _files_of_the_table(self) -> set[str]:
        """In any of its states."""
        if self.kind == "delta":
            log = (line for path in self.folder().glob("_delta_log/*.json") for line in path.read_text().splitlines())
            added = [action["add"]["path"] for line in log if "add" in (action := json.loads(line))]
            return {path.rpartition("/")[2] for path in added}
        if self.kind == "iceberg":
            paths = self._iceberg().inspect.all_data_files()["file_path"].to_pylist()
            return {path.rpartition("/")[2] for path in paths}
        return set()

    def _read(self) -> list[Row]:
        if self.kind == "delta":
            found: list[Row] = DeltaTable(self.options["path"]).to_pyarrow_table().to_pylist()
            return found
        if self.kind == "iceberg":
            return list(self._iceberg().scan().to_arrow().to_pylist())
        return self._query(f"select * from {self.options['dbtable']}")

    def _iceberg(self) -> Any:
        return load_catalog("moldau", **catalog_properties(self.options)).load_table(self.options["table"])

    def _query(self, statement: str) -> list[Row]:
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetch_arrow_table().to_pylist())

    def execute(self, statement: str) -> None:
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            connection.commit()

    def connect(self) -> Connection:
        return database_of(self.options["url"]).connect()


def sink_of(kind: str, folder: Path, *, name: str, url: str | None) -> Sink:
    if kind == "delta":
        return Sink(kind, "moldau_delta", {"path": str(folder / name)}, delta_target)
    if kind == "iceberg":
        options = {"warehouse": str(folder / "warehouse"), "table": f"shop.{name}"}
        return Sink(kind, "moldau_iceberg", options, iceberg_target)
    options = {"url": url or f"sqlite://{folder}/{name}.db", "dbtable": name}
    return Sink(kind, "moldau_sql", options, sql_target)
