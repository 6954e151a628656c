"""Tables that the sinks wrote, read again."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.tables.sinks import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = """
    select id, concat('order ', id) as name, id / 2 as amount, id % 2 = 0 as even, date'2026-01-31' as day,
           timestamp'2026-01-31 12:00:00' as at, cast(id as string) as text, cast(concat('b', id) as binary) as bytes
    from range(0, 6)
"""


def read(spark: SparkSession, sink: Sink) -> DataFrame:
    return spark.read.format(sink.format).options(**sink.options).load()


def test_what_was_written_is_read(spark: SparkSession, sink: Sink) -> None:
    written = spark.sql(ROWS).repartition(2)
    written.write.format(sink.format).options(**sink.options).mode("append").save()
    found = read(spark, sink).orderBy("id").collect()
    assert [(row.id, row.name, row.amount, row.even) for row in found] == [
        (number, f"order {number}", number / 2, number % 2 == 0) for number in range(6)
    ]
    assert bytes(found[3].bytes) == b"b3"
    # SQLite has no types for dates and times: they are text there.
    if sink.kind != "sqlite":
        assert found[0].day == datetime.date(2026, 1, 31)
        assert found[0].at == datetime.datetime(2026, 1, 31, 12)


def test_a_frame_that_is_read_anew_sees_what_is_new(spark: SparkSession, sink: Sink) -> None:
    spark.range(3).write.format(sink.format).options(**sink.options).mode("append").save()
    frame = spark.read.format(sink.format).options(**sink.options, readAnew="true").load()
    assert frame.count() == 3
    spark.range(3, 5).write.format(sink.format).options(**sink.options).mode("append").save()
    assert sorted(row.id for row in frame.where("id > 1").collect()) == [2, 3, 4]


def test_a_lake_table_of_many_files_is_read_by_many_tasks(spark: SparkSession, tmp_path: Path) -> None:
    options = {"path": str(tmp_path / "parted"), "partitionColumns": "day"}
    rows = spark.range(0, 9).selectExpr("id", "id % 3 as day")
    rows.write.format("moldau_delta").options(**options).mode("append").save()
    frame = spark.read.format("moldau_delta").load(options["path"])
    assert frame.rdd.getNumPartitions() == 3
    assert sorted((row.id, row.day) for row in frame.collect()) == [(number, number % 3) for number in range(9)]


@pytest.mark.parametrize(
    ("format_name", "options", "reason"),
    [
        ("moldau_delta", {"path": "{}/none"}, "there is no Delta table at .*/none"),
        ("moldau_iceberg", {"warehouse": "{}", "table": "shop.none"}, "there is no Iceberg table shop.none"),
        ("moldau_sql", {"url": "sqlite:///{}/none.db", "dbtable": "orders"}, "none.db can't be read"),
        ("moldau_delta", {"path": "{}", "pth": "x"}, "option 'pth' is not known here"),
    ],
)
def test_what_is_not_there_is_said(
    spark: SparkSession, tmp_path: Path, format_name: str, options: dict[str, str], reason: str
) -> None:
    named = {name: value.replace("{}", str(tmp_path)) for name, value in options.items()}
    with pytest.raises(Exception, match=reason):
        spark.read.format(format_name).options(**named).load()
