"""Rows in files by partition and size: by tasks, in both lake formats, read by the formats' own libraries."""

from __future__ import annotations

import datetime
import os
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from moldau.spark.option_values import OptionError
from moldau.spark.tables import data_files
from moldau.spark.tables.iceberg.partitions import partition_terms
from moldau.spark.tables.iceberg.target import catalog_properties
from moldau.spark.tables.staging import StagingArea
from tests.spark.tables.conftest import MakeSink
from tests.spark.tables.frames import batch, frame, write
from tests.spark.tables.sinks import Sink

pytestmark = pytest.mark.xdist_group("tables")

COLUMNS = "id bigint, region string, at timestamp, day date, price decimal(10 2), open boolean, part double"
REGIONS = ("north", "a b/c=é%20&+?#", "south", None)
MORNING = datetime.datetime(2026, 1, 31, 8, 30, 1, 123456, tzinfo=datetime.UTC)


def row(number: int) -> tuple[Any, ...]:
    at = MORNING + datetime.timedelta(hours=number)
    unusual = number % 4 == 3
    return (
        number,
        REGIONS[number % 4],
        None if unusual else at,
        None if unusual else at.date(),
        None if unusual else Decimal(number) / 4,
        number % 2 == 0,
        None if unusual else number / 8,
    )


ROWS = [row(number) for number in range(16)]


def iceberg(sink: Sink) -> Table:
    return load_catalog("moldau", **catalog_properties(sink.options)).load_table(sink.options["table"])


def asked_of_delta(sink: Sink, condition: str) -> list[int]:
    """By DataFusion in deltalake, which skips files by what the log says of them."""
    table = DeltaTable(sink.options["path"])
    found = QueryBuilder().register("kept", table).execute(f"select id from kept where {condition} order by id")
    return list(pa.table(found.read_all())["id"].to_pylist())


@pytest.mark.parametrize("column", ["region", "at", "day", "price", "open", "part"])
def test_delta_partitions_by_columns_of_any_type(make_sink: MakeSink, column: str) -> None:
    sink = make_sink("delta")
    target = pickle.loads(pickle.dumps(sink.target(frame(COLUMNS), partitionBy=column)))
    for number in (0, 1, 1):
        first = 8 * number
        write(target, number, batch(COLUMNS, *ROWS[first : first + 5]), batch(COLUMNS, *ROWS[first + 5 : first + 8]))
    table = DeltaTable(sink.options["path"])
    expected = {name: [row[index] for row in ROWS] for index, name in enumerate(frame(COLUMNS).names)}
    assert table.to_pyarrow_table().sort_by("id").to_pydict() == expected
    values = {row[frame(COLUMNS).names.index(column)] for row in ROWS}
    assert len({tuple(each.items()) for each in table.partitions()}) == len(values)
    assert asked_of_delta(sink, f"{column} is null") == [row[0] for row in ROWS if row[_index(column)] is None]
    assert sink.staged() == []


def _index(column: str) -> int:
    return frame(COLUMNS).names.index(column)


def test_delta_skips_partitions_whatever_their_names(make_sink: MakeSink) -> None:
    sink = make_sink("delta")
    write(sink.target(frame(COLUMNS), partitionBy="region,day"), 0, batch(COLUMNS, *ROWS))
    assert asked_of_delta(sink, f"region = '{REGIONS[1]}' and day = date '2026-01-31'") == [1, 5, 9, 13]
    table = DeltaTable(sink.options["path"])
    assert table.to_pyarrow_table(filters=[("region", "=", "south")])["id"].to_pylist() == [2, 6, 10, 14]


@pytest.mark.parametrize(
    ("partitions", "condition", "ids"),
    [
        ("region", "region = 'south'", [2, 6, 10, 14]),
        ("days(at)", "at >= '2026-02-01T00:00:00+00:00'", []),
        ("hours(at), open", "at < '2026-01-31T09:00:00+00:00'", [0]),
        ("months(day), bucket(4, id)", "id = 7", [7]),
        ("truncate(2, region)", "region = 'north'", [0, 4, 8, 12]),
        ("price", "price = 0.50", [2]),
        ("day, year(at)", "day is null", [3, 7, 11, 15]),
    ],
)
def test_iceberg_partitions_by_columns_and_transforms(
    make_sink: MakeSink, partitions: str, condition: str, ids: list[int]
) -> None:
    sink = make_sink("iceberg")
    target = pickle.loads(pickle.dumps(sink.target(frame(COLUMNS), partitionBy=partitions)))
    for number in (0, 1, 1):
        write(target, number, batch(COLUMNS, *ROWS[8 * number : 8 * number + 8]))
    assert sink.ids() == list(range(16))
    table = iceberg(sink)
    found = table.scan(row_filter=condition)
    assert sorted(found.to_arrow()["id"].to_pylist()) == ids
    assert len(list(found.plan_files())) < len(list(table.scan().plan_files())), "no file was skipped"
    # The same options are taken again, and others are not.
    sink.target(frame(COLUMNS), partitionBy=partitions)
    with pytest.raises(OptionError, match=r"option partitionBy = 'id': the table is partitioned by .*, and stays so"):
        sink.target(frame(COLUMNS), partitionBy="id")


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_upserts_find_rows_in_their_partitions(make_sink: MakeSink, kind: str) -> None:
    """A row that comes to another partition leaves the one that it was in."""
    sink, columns = make_sink(kind), "id bigint, region string"
    target = sink.target(frame(columns), partitionBy="region", keys="id")
    write(target, 0, batch(columns, (1, "north"), (2, "north"), (3, "south/é %20")))
    write(target, 1, batch(columns, (2, "south/é %20"), (4, None)), batch(columns, (4, "west")))
    write(target, 2, batch(columns, (3, "north")))
    assert [(row["id"], row["region"]) for row in sink.rows()] == [
        (1, "north"),
        (2, "south/é %20"),
        (3, "north"),
        (4, "west"),
    ]
    assert sink.staged() == []


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_file_ends_at_its_size(make_sink: MakeSink, kind: str) -> None:
    sink, area = make_sink(kind), StagingArea("a query", 0)
    target = sink.target(frame("id bigint, text string"), targetFileSize="256k")
    rows = [(number, os.urandom(200).hex()) for number in range(6_000)]
    staged = target.stage([batch("id bigint, text string", *rows[at : at + 500]) for at in range(0, 6_000, 500)], area)
    sizes = [file.size_bytes for file in staged.files]
    assert len(sizes) == 3
    assert all(256 << 10 <= size < 512 << 10 for size in sizes)
    assert sum(file.rows for file in staged.files) == 6_000


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_many_partitions_are_written_with_few_open_files(
    make_sink: MakeSink, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "OPEN_FILES_MAX", 3)
    monkeypatch.setattr(data_files, "HELD_BYTES_MAX", 1_000)
    sink, columns = make_sink(kind), "id bigint, region bigint"
    rows = [(number, number % 20) for number in range(400)]
    write(sink.target(frame(columns), partitionBy="region"), 0, *(batch(columns, *rows[at::4]) for at in range(4)))
    assert sink.ids() == list(range(400))


@pytest.mark.parametrize(
    ("kind", "options", "complaint"),
    [
        ("delta", {"partitionBy": "land"}, "option partitionBy = 'land': allowed are some of the columns id, region"),
        ("delta", {"partitionBy": "id,region"}, "allowed are some of the columns"),
        ("iceberg", {"partitionBy": "land"}, "the columns are id, region"),
        ("iceberg", {"partitionBy": "bucket(id)"}, r"bucket\(N, COLUMN\)"),
        ("iceberg", {"partitionBy": "weeks(id)"}, "years, months, days or hours"),
        ("delta", {"targetFileSize": "big"}, "option targetFileSize = 'big': allowed is a number of bytes above 0"),
        ("iceberg", {"targetFileSize": "0"}, "allowed is a number of bytes above 0"),
        ("sqlite", {"partitionBy": "id"}, "option 'partitionby' is not known here"),
    ],
)
def test_wrong_options_are_named(make_sink: MakeSink, kind: str, options: dict[str, str], complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        make_sink(kind).target(frame("id bigint, region string"), **options)


def test_partitions_are_read_as_users_write_them() -> None:
    assert partition_terms(" region , days(at), bucket(16, id),truncate(name, 4)") == [
        ("region", "identity"),
        ("at", "day"),
        ("id", "bucket[16]"),
        ("name", "truncate[4]"),
    ]


def test_a_table_that_has_a_partition_by_hand_keeps_it(make_sink: MakeSink) -> None:
    sink = make_sink("delta")
    DeltaTable.create(sink.options["path"], pa.schema([("id", pa.int64()), ("x", pa.int64())]), partition_by="x")
    with pytest.raises(OptionError, match="the table is partitioned by x, and stays so"):
        sink.target(frame("id bigint, x bigint"), partitionBy="id")
    write(sink.target(frame("id bigint, x bigint")), 0, batch("id bigint, x bigint", (1, 2)))
    assert [Path(uri).parent.name for uri in DeltaTable(sink.options["path"]).file_uris()] == ["x=2"]
