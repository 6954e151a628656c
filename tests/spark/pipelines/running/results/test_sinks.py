"""What of a result goes into a topic's records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moldau.spark.pipelines.language.grammar import parse
from moldau.spark.pipelines.plan import Expectation, Location, Violation
from moldau.spark.pipelines.running.frames.plan_frames import Frames
from moldau.spark.pipelines.running.frames.sources import newest_records, newest_rows
from moldau.spark.pipelines.running.results.sinks import Job, job_of, letters_topic_options
from tests.spark.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def job(spark: SparkSession, columns: str, clauses: str = "") -> Job:
    """The job of a sink into a topic whose query has these columns."""
    plan = parse(f"create sink s into topic 'out' {clauses} as select * from a", "p.sql", name="p")
    frames = Frames(spark)
    frames.put("a", spark.createDataFrame([], columns))
    return job_of(plan.sinks[0], frames, plan, "unused")


def test_every_column_of_a_row_is_in_the_value(spark: SparkSession) -> None:
    """Also those that have the name of something that a record has: only `_timestamp` and the like stay behind."""
    row = "id int, timestamp string, topic string, partition int, key string, headers string, value double, _offset int"
    for clauses, columns in [("", ["value"]), ("key id", ["key", "value"])]:
        made = job(spark, row, clauses)
        assert made.frame.columns == columns
        value = made.frame.select("value.*").columns
        assert value == ["id", "timestamp", "topic", "partition", "key", "headers", "value"]
        assert made.options["valueFormat"] == "json"


def test_a_result_that_is_records_goes_as_it_is(spark: SparkSession) -> None:
    made = job(spark, "key binary, value binary, _key binary, _offset bigint")
    assert made.frame.columns == ["key", "value"]
    assert "valueFormat" not in made.options


def test_letters_may_be_as_large_as_the_records_of_any_source(topics: Topics) -> None:
    small, large = topics.create(), topics.create(config={"max.message.bytes": str(6 << 20)})
    plan = parse(f"create stream a from topic '{small}, {large}'; create stream b from topic 'gone'", "p.sql", name="p")
    plan = replace(plan, settings={"bootstrap.servers": topics.bootstrap})
    made = letters_topic_options(plan)
    assert made["topicConfig.max.message.bytes"] == str((6 << 20) + (64 << 10))
    assert made["kafka.bootstrap.servers"] == topics.bootstrap
    assert "topicConfig.max.message.bytes" not in letters_topic_options(replace(plan, sources=plan.sources[1:]))


def test_a_name_with_a_dot_is_one_name(spark: SparkSession) -> None:
    made = job(spark, "`log.level` string, `a``b` int, log struct<level: string>, id int", "key (`log.level`)")
    assert made.frame.select("value.*").columns == ["log.level", "a`b", "log", "id"]
    assert made.frame.columns == ["key", "value"]


def test_expectations_and_tables_take_names_with_dots(spark: SparkSession) -> None:
    plan = parse("create table a from topic 'a' key (`log.id`)", "p.sql", name="p")
    rule = Expectation("positive", "a", "`log.id` > 0", Violation.FAIL, Location("p.sql", 1))
    frames = Frames(spark)
    known = "_topic string, _partition int, _offset bigint, _timestamp timestamp, _tombstone boolean, _key binary"
    records = spark.createDataFrame([], f"`log.id` int, {known}")
    frames.add(plan.sources[0], newest_rows(newest_records(records, plan.sources[0]), plan.sources[0]), [rule])
    assert frames.by_name["a"].collect() == []
