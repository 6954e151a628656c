"""Care for lake tables, while queries go on: the rows stay the same, and each batch still counts once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from moldau.spark.option_values import OptionError
from moldau.spark.tables.maintenance import MaintainedTable, NotMaintained, maintained_table
from moldau.spark.tables.staging import StagingArea
from moldau.spark.tables.writing import Step
from tests.spark.tables.conftest import MakeSink
from tests.spark.tables.frames import batch, frame, write
from tests.spark.tables.sinks import Sink

pytestmark = pytest.mark.xdist_group("tables")

COLUMNS = "id bigint, region string"
KINDS = ("delta", "iceberg")
DAY_MS = 86_400_000


def maintained(sink: Sink) -> MaintainedTable:
    if sink.kind == "delta":
        return maintained_table(sink.options["path"], None, {})
    if sink.kind == "iceberg":
        return maintained_table(sink.options["warehouse"], sink.options["table"], {})
    return maintained_table(sink.options["url"], sink.options["dbtable"], {})


def filled(sink: Sink, **options: str) -> None:
    target = sink.target(frame(COLUMNS), **options)
    for number in range(8):
        write(target, number, batch(COLUMNS, (number, "north"), (100 + number, "south")))


def files_on_disk(sink: Sink) -> set[Path]:
    return set(sink.folder().rglob("*.parquet"))


@pytest.mark.parametrize("partitions", ["", "region"])
@pytest.mark.parametrize("kind", KINDS)
def test_small_files_become_large_ones(make_sink: MakeSink, kind: str, partitions: str) -> None:
    sink = make_sink(kind)
    filled(sink, partitionBy=partitions)
    before = sink.rows()
    done = maintained(sink).optimize(None)
    assert (done.files_before, done.files_after) == ((16, 2) if partitions else (8, 1))
    assert sink.rows() == before
    again = maintained(sink).optimize(None)
    assert again.files_after == again.files_before == done.files_after
    # Batches are remembered, and new ones come.
    filled(sink)
    write(sink.target(frame(COLUMNS)), 8, batch(COLUMNS, (8, "north")))
    assert len(sink.ids()) == 17


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_that_appends_meanwhile_loses_nothing(make_sink: MakeSink, kind: str) -> None:
    sink = make_sink(kind)
    filled(sink)
    target, area = sink.target(frame(COLUMNS)), StagingArea("another query", 0)
    staged = [target.stage([batch(COLUMNS, (1000, "west"))], area)]
    maintained(sink).optimize(None)
    target.apply(staged, Step(area, overwrite=False))
    maintained(sink).vacuum(older_than_ms=DAY_MS, dry_run=False)
    assert len(sink.ids()) == 17


@pytest.mark.parametrize("kind", KINDS)
def test_what_no_state_needs_is_removed(make_sink: MakeSink, kind: str) -> None:
    sink = make_sink(kind)
    filled(sink, keys="id")
    left = sink.target(frame(COLUMNS)).stage([batch(COLUMNS, (1, "of a killed job"))], StagingArea("gone", None))
    stranger = sink.folder() / "notes.txt"
    stranger.write_text("not ours")
    maintained(sink).optimize(None)
    before, rows = files_on_disk(sink), sink.rows()
    assert maintained(sink).vacuum(older_than_ms=DAY_MS, dry_run=False).files == []
    assert files_on_disk(sink) == before, "all of it is younger than a day"
    would = maintained(sink).vacuum(older_than_ms=0, dry_run=True)
    assert files_on_disk(sink) == before
    done = maintained(sink).vacuum(older_than_ms=0, dry_run=False)
    assert len(done.files) >= len(would.files) > 8
    assert any(left.files[0].path.rpartition("/")[2] in path for path in done.files)
    assert len(files_on_disk(sink)) == 1
    assert stranger.exists() or kind == "delta"
    assert sink.rows() == rows
    filled(sink, keys="id")
    assert sink.rows() == rows, "batches are remembered"


@pytest.mark.parametrize("kind", KINDS)
def test_old_files_of_a_state_in_use_stay(make_sink: MakeSink, kind: str) -> None:
    sink = make_sink(kind)
    filled(sink)
    for path in sink.folder().rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    maintained(sink).vacuum(older_than_ms=DAY_MS, dry_run=False)
    assert len(sink.ids()) == 16
    write(sink.target(frame(COLUMNS)), 8, batch(COLUMNS, (8, "north")))
    assert len(sink.ids()) == 17


def test_a_table_is_described(sink: Sink) -> None:
    filled(sink)
    found = maintained(sink).describe()
    assert (found.format, found.rows) == (sink.kind, 16)
    assert [name for name, _ in found.columns] == ["id", "region"]
    if sink.kind in KINDS:
        assert found.files == 8
    if sink.kind != "delta":
        assert found.queries == {"a query": 7}


def test_a_warehouse_has_many_tables(make_sink: MakeSink) -> None:
    sink = make_sink("iceberg")
    filled(sink)
    with pytest.raises(OptionError, match="name one with --table"):
        maintained_table(sink.options["warehouse"], None, {})
    with pytest.raises(OptionError, match=r"there is no Iceberg table shop\.none"):
        maintained_table(sink.options["warehouse"], "shop.none", {}).describe()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_databases_look_after_themselves(make_sink: MakeSink, kind: str) -> None:
    sink = make_sink(kind)
    filled(sink)
    with pytest.raises(NotMaintained, match="a database looks after its tables itself"):
        maintained(sink).optimize(None)
