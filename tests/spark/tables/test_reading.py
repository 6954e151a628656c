"""Tables that the sinks wrote, read again."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau.spark.tables.databases.table_names import quoted
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


def test_columns_of_postgresql_that_spark_has_no_type_for(
    spark: SparkSession, make_sink: Callable[[str], Sink]
) -> None:
    """A numeric with a precision is a decimal, all others are text."""
    sink = make_sink("postgresql")
    told = {
        "exact": ("numeric(10, 2)", "12.5", "decimal(10,2)", Decimal("12.50")),
        "whole": ("numeric(5)", "7", "decimal(5,0)", Decimal(7)),
        "loose": ("numeric", "1.125", "string", "1.125"),
        "endless": ("numeric(50, 2)", "3", "string", "3.00"),
        "rounded": ("numeric(3, -2)", "4200", "string", "4200"),
        "number": ("uuid", "'6f7a4c9e-0000-4000-8000-000000000001'", "string", "6f7a4c9e-0000-4000-8000-000000000001"),
        "address": ("inet", "'10.0.0.1'", "string", "10.0.0.1/32"),
        "document": ("jsonb", """'{"a": 1}'""", "string", '{"a": 1}'),
        "span": ("interval", "'90 minutes'", "string", "01:30:00"),
        "Tags": ("text[]", "'{a,b}'", "array<string>", ["a", "b"]),
    }
    table = sink.options["dbtable"]
    sink.execute(f"create table {table} ({', '.join(f'{quoted(name)} {one[0]}' for name, one in told.items())})")
    sink.execute(f"insert into {table} values ({', '.join(one[1] for one in told.values())})")
    sink.execute(f"insert into {table} values ({', '.join('null' for _ in told)})")
    frame = read(spark, sink)
    assert frame.dtypes == [(name, one[2]) for name, one in told.items()]
    filled, nothing = frame.orderBy("exact", ascending=False).collect()
    assert list(filled) == [one[3] for one in told.values()]
    assert list(nothing) == [None] * len(told)


def test_a_frame_that_is_read_anew_sees_what_is_new(spark: SparkSession, sink: Sink) -> None:
    spark.range(3).write.format(sink.format).options(**sink.options).mode("append").save()
    frame = spark.read.format(sink.format).options(**sink.options, readAnew="true").load()
    assert frame.count() == 3
    spark.range(3, 5).write.format(sink.format).options(**sink.options).mode("append").save()
    assert sorted(row.id for row in frame.where("id > 1").collect()) == [2, 3, 4]


def test_a_lake_table_of_many_files_is_read_by_many_tasks(spark: SparkSession, tmp_path: Path) -> None:
    options = {"path": str(tmp_path / "parted"), "partitionBy": "day"}
    rows = spark.range(0, 9, 1, 1).selectExpr("id", "id % 3 as day")
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
