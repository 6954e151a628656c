"""Batch jobs into tables, and what becomes of those that fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.spark.tables.sinks import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def orders(spark: SparkSession, first: int, end: int) -> DataFrame:
    return spark.range(first, end).selectExpr("id", "'new' as state").repartition(2)


def write(frame: DataFrame, sink: Sink, mode: str, **options: str) -> None:
    frame.write.format(sink.format).options(**sink.options, **options).mode(mode).save()


def test_jobs_append_and_overwrite(spark: SparkSession, sink: Sink) -> None:
    write(orders(spark, 0, 5), sink, "append")
    write(orders(spark, 5, 9), sink, "append")
    assert (sink.ids(), sink.staged()) == (list(range(9)), [])
    write(orders(spark, 20, 23), sink, "overwrite")
    assert sink.ids() == [20, 21, 22]


def test_a_task_that_fails_leaves_nothing(spark: SparkSession, sink: Sink) -> None:
    frame = spark.range(0, 50_000, 1, 1).selectExpr("if(id = 49000, null, id) as id", "'new' as state")
    with pytest.raises(Exception, match="'id' is one of the keys of an upsert, and a row has null there"):
        write(frame, sink, "append", keys="id")
    assert (sink.ids(), sink.staged()) == ([], [])


def test_a_commit_that_fails_leaves_nothing(spark: SparkSession, make_sink: Callable[[str], Sink]) -> None:
    sink = make_sink("postgresql")
    sink.execute(f"create table {sink.options['dbtable']} (id integer, state text)")
    with pytest.raises(Exception, match="integer out of range"):
        write(orders(spark, 1 << 40, (1 << 40) + 2), sink, "append")
    assert (sink.ids(), sink.staged()) == ([], [])


def test_a_frame_that_does_not_fit_is_told_before_a_task_runs(spark: SparkSession, sink: Sink) -> None:
    write(orders(spark, 0, 1), sink, "append")
    with pytest.raises(Exception, match="the table has no column 'price'"):
        write(orders(spark, 1, 2).selectExpr("*", "1.5 as price"), sink, "append")
    assert sink.ids() == [0]
