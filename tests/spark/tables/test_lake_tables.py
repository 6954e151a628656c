"""What only lake tables have: races between drivers, snapshots that expire, partitions, bounds of files."""

from __future__ import annotations

import ast
import json
import threading
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyspark.sql.types import LongType, StringType, StructField, StructType

from moldau.spark import tables
from moldau.spark.tables.iceberg.table import newest_batch
from moldau.spark.tables.iceberg.target import catalog_properties
from moldau.spark.tables.staging import FileStage, StagedFile, StagingArea
from moldau.spark.tables.writing import Step, Target
from tests.spark.tables.conftest import MakeSink
from tests.spark.tables.sinks import Sink

pytestmark = pytest.mark.xdist_group("tables")

ORDERS = StructType([StructField("id", LongType()), StructField("state", StringType())])


def batch(*ids: int | None, state: str | None = "new") -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(ids, pa.int64()), "state": pa.array([state] * len(ids), pa.string())})


def write(target: Target, number: int, *batches: pa.RecordBatch) -> None:
    area = StagingArea("a query", number)
    target.apply([target.stage([rows], area) for rows in batches], Step(area, overwrite=False))


def test_only_public_parts_of_the_libraries_are_used() -> None:
    """What begins with an underscore is gone with their next release."""
    for path in Path(tables.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("pyiceberg", "deltalake")):
                names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
                assert not [name for name in names if name.startswith("_")], path


@pytest.mark.parametrize("keys", ["", "id"])
def test_of_two_drivers_with_the_same_batch_one_counts(sink: Sink, keys: str) -> None:
    """A driver that was thought dead comes back: both have staged the batch, and both commit it at once."""
    target, area = sink.target(ORDERS, keys=keys), StagingArea("a query", 0)
    staged = [[target.stage([batch(1, 2)], area)] for _ in range(3)]
    drivers = [threading.Thread(target=target.apply, args=(each, Step(area, overwrite=False))) for each in staged]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert sink.ids() == [1, 2]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
@pytest.mark.parametrize("checked", [False, True], ids=["before it looked", "after it looked"])
@pytest.mark.parametrize("keys", ["", "id"])
def test_a_driver_whose_rows_another_has_removed_with_the_batch_is_done(
    make_sink: MakeSink, kind: str, keys: str, checked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, area = make_sink(kind), StagingArea("a query", 0)
    target = sink.target(ORDERS, keys=keys)
    late, soon = ([target.stage([batch(1, 2)], area)] for _ in range(2))
    check = FileStage.check

    def let_the_other_commit(stage: FileStage, files: Sequence[StagedFile], area: StagingArea) -> None:
        monkeypatch.setattr(FileStage, "check", check)
        if checked:
            check(stage, files, area)
        target.apply(soon, Step(area, overwrite=False))
        if not checked:
            check(stage, files, area)

    monkeypatch.setattr(FileStage, "check", let_the_other_commit)
    target.apply(late, Step(area, overwrite=False))
    assert (sink.ids(), sink.staged()) == ([1, 2], [])


def test_queries_that_write_at_once_all_get_in(sink: Sink) -> None:
    target = sink.target(ORDERS)
    areas = [StagingArea(f"query {number}", 0) for number in range(4)]
    staged = [[target.stage([batch(number)], area)] for number, area in enumerate(areas)]
    writers = [
        threading.Thread(target=target.apply, args=(each, Step(area, overwrite=False)))
        for each, area in zip(staged, areas, strict=True)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sink.ids() == [0, 1, 2, 3]


def test_a_partitioned_delta_table_gets_its_rows_in_their_folders(make_sink: MakeSink) -> None:
    sink = make_sink("delta")
    for number in (0, 1, 1):
        write(sink.target(ORDERS, partitionBy="state"), number, batch(number), batch(number + 10, state="paid"))
    assert (sink.ids(), sink.staged()) == ([0, 1, 10, 11], [])
    assert {Path(uri).parent.name for uri in DeltaTable(sink.options["path"]).file_uris()} == {
        "state=new",
        "state=paid",
    }


def test_a_partitioned_iceberg_table_gets_its_rows_in_their_folders(make_sink: MakeSink) -> None:
    sink = make_sink("iceberg")
    catalog = load_catalog("moldau", **catalog_properties(sink.options))
    catalog.create_namespace("shop")
    schema = pa.schema([("id", pa.int64()), ("state", pa.string())])
    with catalog.create_table(sink.options["table"], schema).update_spec() as spec:
        spec.add_identity("state")
    for keys in ("", "id"):
        for number in (0, 1, 1):
            offset = 2 if keys else 0
            write(sink.target(ORDERS, keys=keys), number + offset, batch(number), batch(number + 10, state="paid"))
    # The second round changes rows of the first by key, so that nothing is there twice.
    assert (sink.ids(), sink.staged()) == ([0, 1, 10, 11], [])
    tasks = catalog.load_table(sink.options["table"]).scan().plan_files()
    assert {Path(task.file.file_path).parent.name for task in tasks} == {"state=new", "state=paid"}


def test_a_batch_is_remembered_when_its_snapshot_has_expired(make_sink: MakeSink) -> None:
    sink = make_sink("iceberg")
    target = sink.target(ORDERS)
    write(target, 7, batch(1))
    area = StagingArea("another query", 0)
    target.apply([target.stage([batch(2)], area)], Step(area, overwrite=False))
    table = load_catalog("moldau", **catalog_properties(sink.options)).load_table(sink.options["table"])
    oldest = next(snapshot for snapshot in table.snapshots() if snapshot.parent_snapshot_id is None)
    table.maintenance.expire_snapshots().by_id(oldest.snapshot_id).commit()
    table = load_catalog("moldau", **catalog_properties(sink.options)).load_table(sink.options["table"])
    assert newest_batch(table, "a query") == 7
    assert newest_batch(table, "a query that never was") == -1
    assert "commit.retry.num-retries" not in table.properties
    write(target, 7, batch(1))
    assert sink.ids() == [1, 2]


def test_the_log_knows_the_bounds_of_a_file(make_sink: MakeSink) -> None:
    sink = make_sink("delta")
    target, area = sink.target(ORDERS), StagingArea("a query", 0)
    staged = target.stage([batch(3, None, 9, state="x" * 33), batch(5, state=None)], area)
    assert json.loads(staged.files[0].statistics) == {
        "numRecords": 4,
        "minValues": {"id": 3},
        "maxValues": {"id": 9},
        "nullCount": {"id": 1, "state": 1},
    }
