"""A batch that the driver writes by a job of its own is the batch that Spark writes through the data source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from moldau.spark.options import sink_options
from moldau.spark.writing.batch_job import write_batch
from moldau.spark.writing.delivery import write_exactly_once
from moldau.spark.writing.task_progress import SinkTask
from tests.spark.topics import Topics
from tests.spark.writing.test_many_tasks import left_behind, prefixes
from tests.spark.writing.test_sink import write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS = 5
ARROW_ROWS = 10_000  # that Spark sends to a worker at once


class Batches:
    """Of one query, written into a topic that has fewer partitions than a batch has tasks."""

    def __init__(self, spark: SparkSession, topics: Topics) -> None:
        self.spark, self.topics = spark, topics
        self.topic, self.prefix = topics.create(partitions=3), topics.name("team")

    def options(self, number: int) -> dict[str, Any]:
        return {"topic": self.topic, **prefixes(self.prefix), "queryId": "q", "batchId": str(number)}

    def frame(self, number: int, value: str = "cast(id as string)") -> DataFrame:
        return self.spark.range(number * 20, number * 20 + 20, 1, TASKS).selectExpr(f"{value} as value")

    def by_job(self, frame: DataFrame, number: int) -> None:
        write_batch(frame, {"kafka.bootstrap.servers": self.topics.bootstrap, **self.options(number)})

    def by_source(self, frame: DataFrame, number: int) -> None:
        write(frame, self.topics, **self.options(number))

    def counts(self) -> Counter[int]:
        return Counter(int(value or b"") for value in self.topics.values(self.topic))


@pytest.fixture
def batches(spark: SparkSession, topics: Topics) -> Batches:
    return Batches(spark, topics)


def test_each_row_is_there_once_however_often_a_batch_runs(batches: Batches) -> None:
    for number in (0, 0, 1, 1):
        batches.by_job(batches.frame(number), number)
    assert batches.counts() == dict.fromkeys(range(40), 1)
    groups, ids = left_behind(batches.topics, batches.prefix)
    assert groups == [f"{batches.prefix}-q-sink", f"{batches.prefix}-q-sink-done"]
    assert len(ids) == TASKS


@pytest.mark.parametrize("is_first", [True, False], ids=["begun by a data source", "begun by a job"])
def test_both_ways_write_the_same_batch(batches: Batches, is_first: bool) -> None:
    """A new version runs the last batch of the one before it again: its tasks must have the same rows."""
    ways: list[Callable[[DataFrame, int], None]] = [batches.by_source, batches.by_job]
    failing = batches.frame(0, "if(id = 11, raise_error('no'), cast(id as string))")
    for way, frame in zip(ways if is_first else ways[::-1], (failing, batches.frame(0)), strict=True):
        if frame is failing:
            with pytest.raises(Exception, match="no"):
                way(frame, 0)
            assert 0 < len(batches.counts()) < 20
        else:
            way(frame, 0)
    assert batches.counts() == dict.fromkeys(range(20), 1)


def test_other_rows_are_another_batch(batches: Batches) -> None:
    batches.by_job(batches.frame(0), 0)
    with pytest.raises(Exception, match=r"BatchChanged: batch 0 of query q, task [0-4], has 4 records of \d+ bytes"):
        batches.by_job(batches.frame(0, "concat('other', id)"), 0)
    assert batches.counts() == dict.fromkeys(range(20), 1)


@pytest.mark.parametrize("tasks", [0, 2])
@pytest.mark.parametrize("way", ["by_source", "by_job"])
def test_a_batch_that_comes_back_in_fewer_tasks_is_another_batch(batches: Batches, way: str, tasks: int) -> None:
    """The rows of a task that is there no more are in others, which know nothing of what it wrote."""
    servers = {"kafka.bootstrap.servers": batches.topics.bootstrap}
    last = pa.RecordBatch.from_pydict({"value": [b"%d" % number for number in range(16, 20)]})
    task = SinkTask("q", 0, TASKS - 1, batches.prefix, batches.prefix)
    write_exactly_once([last], sink_options({**servers, **batches.options(0)}, streaming=False), task)
    fewer = batches.spark.range(0, 20, 1, tasks) if tasks else batches.spark.createDataFrame([], "id bigint")
    with pytest.raises(Exception, match="batch 0 of query q was written with rows in task 4, which has"):
        getattr(batches, way)(fewer.selectExpr("cast(id as string) as value"), 0)
    if way == "by_job" or not tasks:
        assert batches.counts() == dict.fromkeys(range(16, 20), 1), "told before anything is written"


@pytest.mark.parametrize("way", ["by_source", "by_job"])
def test_a_task_that_is_ended_between_two_parts_of_its_rows_writes_none(batches: Batches, way: str) -> None:
    """Arrow takes a socket that was closed for the end of the rows; those that were there would count as all."""
    rows = batches.spark.range(0, 3 * ARROW_ROWS, 1, 1)
    write_rows = getattr(batches, way)
    with pytest.raises(Exception, match="no"):
        write_rows(rows.selectExpr(f"if(id = {2 * ARROW_ROWS}, raise_error('no'), cast(id as string)) as value"), 0)
    assert not batches.counts()
    write_rows(rows.selectExpr("cast(id as string) as value"), 0)
    assert batches.counts() == dict.fromkeys(range(3 * ARROW_ROWS), 1)
