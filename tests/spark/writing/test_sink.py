"""`df.write` and `df.writeStream` with `format("moldau")` against a real broker."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write(frame: DataFrame, topics: Topics, **options: Any) -> None:
    writer = frame.write.format("moldau").mode("append").option("kafka.bootstrap.servers", topics.bootstrap)
    writer.options(**options).save()


@pytest.mark.parametrize("writer", ["auto", "librdkafka"])
@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_rows_become_records(spark: SparkSession, topics: Topics, delivery: str, writer: str) -> None:
    topic, prefix = topics.create(partitions=3), topics.name("team")
    frame = spark.range(1000).selectExpr("cast(id as string) as key", "concat('v', id) as value")
    write(frame, topics, topic=topic, delivery=delivery, writer=writer, groupIdPrefix=prefix)
    rows = topics.rows(topic)
    assert sorted(int(row.key or b"") for row in rows) == list(range(1000))
    assert all(row.value == b"v" + (row.key or b"") for row in rows)
    assert {row.partition for row in rows} == {0, 1, 2}
    assert not [group for group in topics.groups() if group.startswith(prefix)]


@pytest.mark.parametrize("writer", ["auto", "librdkafka"])
def test_columns_say_topic_partition_and_headers(spark: SparkSession, topics: Topics, writer: str) -> None:
    one, two = topics.create(partitions=4), topics.create(partitions=4)
    frame = spark.createDataFrame(
        [
            (one, 3, b"a", [("h", b"1"), ("g", None)]),
            (two, 1, b"b", None),
            (one, None, None, []),
        ],
        "topic string, partition int, value binary, headers array<struct<key:string,value:binary>>",
    )
    write(frame, topics, writer=writer)
    found = {row.value: row for row in topics.rows(one)}
    assert (found[b"a"].partition, found[b"a"].headers) == (3, (("h", b"1"), ("g", None)))
    assert found[None].headers == ()
    assert [(row.partition, row.value) for row in topics.rows(two)] == [(1, b"b")]


def test_a_key_goes_where_java_sends_it(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create(partitions=10)
    write(spark.createDataFrame([("foobar", "v")], "key string, value string"), topics, topic=topic)
    # murmur2("foobar") masked to 31 bits is 1357151166 by Kafka's own unit test data (-790332482).
    assert [row.partition for row in topics.rows(topic)] == [(-790332482 & 0x7FFFFFFF) % 10]


@pytest.mark.parametrize(
    ("schema", "options", "told"),
    [
        ("value int", {"topic": "t"}, "column value is int; valueFormat=binary takes binary or string"),
        ("other string", {"topic": "t"}, "the frame has no column 'value'"),
        ("value string", {}, "give the option topic, or a column 'topic'"),
        ("value string", {"topic": "t", "delivery": "maybe"}, "delivery = 'maybe': allowed are at-least-once"),
        ("value string", {"topic": "t", "kafka.key.serializer": "x"}, "kafka.key.serializer"),
    ],
)
def test_wrong_frames_and_options_are_named(
    spark: SparkSession, topics: Topics, schema: str, options: dict[str, str], told: str
) -> None:
    with pytest.raises(Exception, match=told):
        write(spark.createDataFrame([], schema), topics, **options)


def stream_copy(spark: SparkSession, topics: Topics, source: str, checkpoint: Path, **options: str) -> None:
    stream = (
        spark.readStream.format("moldau")
        .options(**{"kafka.bootstrap.servers": topics.bootstrap, "subscribe": source, "startingOffsets": "earliest"})
        .option("maxOffsetsPerTrigger", 100)
        .load()
    )
    query = (
        stream.select("key", "value")
        .writeStream.format("moldau")
        .options(**{"kafka.bootstrap.servers": topics.bootstrap, "checkpointLocation": str(checkpoint), **options})
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)


def newest(folder: Path) -> Path:
    return max((path for path in folder.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))


def forget_last_commit(checkpoint: Path) -> None:
    """As if the driver had died between writing a batch and noting that it did."""
    last = newest(checkpoint / "commits")
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("delivery", "writer", "times"),
    [("exactly-once", "auto", {1}), ("exactly-once", "librdkafka", {1}), ("at-least-once", "auto", {1, 2})],
)
def test_a_batch_that_runs_again(
    spark: SparkSession, topics: Topics, checkpoint: Path, delivery: str, writer: str, times: set[int]
) -> None:
    source, target = topics.create(partitions=4), topics.create(partitions=2)
    prefix = topics.name("team")
    options = {"topic": target, "delivery": delivery, "writer": writer, "groupIdPrefix": prefix}
    topics.produce(source, [b"%d" % index for index in range(250)])
    stream_copy(spark, topics, source, checkpoint, **options)
    forget_last_commit(checkpoint)
    topics.produce(source, [b"%d" % index for index in range(250, 300)])
    stream_copy(spark, topics, source, checkpoint, **options)
    counts = Counter(topics.values(target))
    assert sorted(int(value or b"") for value in counts) == list(range(300))
    assert set(counts.values()) == times
    # Two of the four tasks have no partition to note their batch under.
    groups = [each.group_id for each in topics.admin.list_consumer_groups().result().valid]
    kept = sorted(name.rpartition("-sink")[2] for name in groups if name.startswith(prefix))
    assert kept == (["", "-done"] if delivery == "exactly-once" else [])


def test_updates_go_through_foreach_batch_exactly_once(spark: SparkSession, topics: Topics, checkpoint: Path) -> None:
    """Spark refuses update mode to Python sinks; a batch write that knows its streaming batch is as good."""
    source, target = topics.create(), topics.create()
    topics.produce(source, [b"a", b"b", b"a"])
    query_id = topics.name("query")

    def put(frame: DataFrame, batch: int) -> None:
        write(frame, topics, topic=target, queryId=query_id, batchId=str(batch))

    def run() -> None:
        reader = spark.readStream.format("moldau").option("kafka.bootstrap.servers", topics.bootstrap)
        values = reader.option("subscribe", source).option("startingOffsets", "earliest").load()
        counts = values.groupBy("value").count().selectExpr("value as key", "cast(count as string) as value")
        writer = counts.writeStream.foreachBatch(put).outputMode("update")
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        assert query.awaitTermination(120)

    run()
    forget_last_commit(checkpoint)
    run()
    assert sorted((row.key, row.value) for row in topics.rows(target)) == [(b"a", b"2"), (b"b", b"1")]
