"""Keys that are looked for in a snapshot's files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampNTZType

from moldau.spark.pipelines.running.joining import snapshot_files as files
from moldau.spark.pipelines.running.joining.keys import Lookup
from moldau.spark.pipelines.running.joining.snapshot_files import SnapshotFiles, snapshot_files

SCHEMA = StructType([StructField("town", StringType()), StructField("number", LongType())])
GROUP = 10


def written(folder: Path, **metadata: str) -> None:
    """Two files of a hundred rows each, in order."""
    for file in range(2):
        numbers = list(range(file * 100, file * 100 + 100))
        table = pa.table({"town": [f"t{number // 20:02}" for number in numbers], "number": numbers})
        pq.write_table(table.replace_schema_metadata(metadata), folder / f"{file}.parquet", row_group_size=GROUP)


def opened(folder: Path) -> SnapshotFiles:
    found = snapshot_files(folder, SCHEMA, ("town", "number"))
    assert found is not None
    return found


def numbers(found: SnapshotFiles, columns: Sequence[str], *values: Any) -> list[int]:
    rows = found.rows(Lookup(tuple(columns), None, values))  # type: ignore[arg-type]
    assert rows is not None
    return sorted(rows["number"].to_pylist())


def test_only_groups_that_may_have_a_key_are_read(tmp_path: Path) -> None:
    written(tmp_path)
    found = opened(tmp_path)
    assert numbers(found, ["number"], (5,), (99,), (100,), (777,)) == [5, 99, 100]
    assert numbers(found, ["number", "town"], (5, "t00"), (50, "t09")) == [5]
    assert numbers(found, ["town"], ("t03",), ("",), ("zz",)) == list(range(60, 80))
    assert numbers(found, ["town"]) == []
    # The first file is gone but for what is known of it: a key of the second does not need it.
    (tmp_path / "0.parquet").unlink()
    assert numbers(found, ["number"], (150,)) == [150]
    with pytest.raises(FileNotFoundError):
        numbers(found, ["number"], (50,))


def test_a_file_that_says_nothing_about_its_groups_is_read(tmp_path: Path) -> None:
    table = pa.table({"town": ["a", None, "b"], "number": [1, 2, 3]})
    pq.write_table(table, tmp_path / "a.parquet", write_statistics=False)
    pq.write_table(table.slice(1, 1), tmp_path / "b.parquet")
    assert numbers(opened(tmp_path), ["town"], ("b",)) == [3]


def test_what_is_too_much_is_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    found = opened(tmp_path)
    monkeypatch.setattr(files, "READ_BYTES_MAX", found.groups[0].size_bytes * 3)
    assert found.rows(Lookup(("number",), None, [(1,), (21,)])) is not None  # type: ignore[arg-type]
    assert found.rows(Lookup(("number",), None, [(n,) for n in range(200)])) is None  # type: ignore[arg-type]


def test_dates_of_another_calendar_are_left_to_spark(tmp_path: Path) -> None:
    written(tmp_path, **{"org.apache.spark.legacyDateTime": ""})
    assert snapshot_files(tmp_path, SCHEMA, ("town",)) is None


def test_bounds_that_python_has_no_values_for_are_left_out(tmp_path: Path) -> None:
    late = pa.array([253_402_300_800_000_000], pa.timestamp("us"))  # the first of the year 10000
    pq.write_table(pa.table({"at": late, "number": [1]}), tmp_path / "part-0.parquet")
    schema = StructType([StructField("at", TimestampNTZType()), StructField("number", LongType())])
    found = snapshot_files(tmp_path, schema, ("at", "number"))
    assert found is not None
    assert found.groups[0].bounds == {"at": None, "number": (1, 1)}


def test_a_table_of_very_many_row_groups_is_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    monkeypatch.setattr(files, "ROW_GROUPS_MAX", 1)
    assert snapshot_files(tmp_path, SCHEMA, ("town",)) is None
