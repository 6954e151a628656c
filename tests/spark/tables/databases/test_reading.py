"""Tables of databases, read without Spark."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from moldau.spark.tables.databases.target import readable_database
from moldau.spark.tables.reading import Part


@pytest.mark.parametrize("scheme", ["sqlite://", "sqlite:///"])
@pytest.mark.parametrize("folder", ["plain", "a b", "a#b", "50%41", "é&=;+"])
def test_a_file_of_sqlite_may_have_any_name(tmp_path: Path, folder: str, scheme: str) -> None:
    path = tmp_path / folder / "shop.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table orders as select 1 as id")
        connection.commit()
    table = readable_database({"url": f"{scheme}{path}", "dbtable": "orders"})
    assert [batch.to_pydict() for batch in table.batches(Part(None))] == [{"id": ["1"]}]
