"""`spark.read.format("moldau")` against a real broker."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(spark: SparkSession, topics: Topics, topic: str | None, **options: Any) -> DataFrame:
    reader = spark.read.format("moldau").option("kafka.bootstrap.servers", topics.bootstrap)
    if topic is not None:
        reader = reader.option("subscribe", topic)
    return reader.options(**options).load()


def test_a_topic_is_a_frame_with_the_stock_columns(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create(partitions=2)
    topics.produce(topic, [b"a", b"b"], key=b"k", partition=0, timestamp=1_700_000_000_123)
    topics.produce(topic, [b"c", None], partition=1)
    frame = read(spark, topics, topic)
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    rows = frame.orderBy("partition", "offset").collect()
    assert [(row.key, row.value, row.topic, row.partition, row.offset) for row in rows] == [
        (b"k", b"a", topic, 0, 0),
        (b"k", b"b", topic, 0, 1),
        (None, b"c", topic, 1, 0),
        (None, None, topic, 1, 1),
    ]
    assert {row.timestampType for row in rows} == {0}
    assert frame.selectExpr("min(unix_millis(timestamp))").collect()[0][0] == 1_700_000_000_123


def test_headers_come_when_they_are_asked_for(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create()
    topics.produce(topic, [b"a"], headers=[("h", b"1"), ("h", b"2"), ("empty", None)])
    topics.produce(topic, [b"b"])
    rows = read(spark, topics, topic, includeHeaders="true").orderBy("offset").collect()
    assert [[tuple(header) for header in row.headers or []] for row in rows] == [
        [("h", b"1"), ("h", b"2"), ("empty", None)],
        [],
    ]


def test_offsets_and_times_bound_a_read(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create()
    for second in range(10):
        topics.produce(topic, [b"%d" % second], timestamp=1_700_000_000_000 + second * 1000)

    def values(**options: str) -> list[bytes]:
        return [row.value for row in read(spark, topics, topic, **options).orderBy("offset").collect()]

    between = {"startingOffsets": json.dumps({topic: {"0": 2}}), "endingOffsets": json.dumps({topic: {"0": 5}})}
    assert values(**between) == [b"2", b"3", b"4"]
    assert values(startingTimestamp="1700000006500") == [b"7", b"8", b"9"]
    times = json.dumps({topic: {"0": 1_700_000_002_000}})
    assert values(endingOffsetsByTimestamp=times) == [b"0", b"1"]
    assert values(startingTimestamp="1900000000000", startingOffsetsByTimestampStrategy="latest") == []


def test_ranges_that_end_in_control_records_end(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create()
    topics.transaction(topic, [b"kept"], commit=True)
    topics.transaction(topic, [b"dropped"] * 3, commit=False)
    committed = read(spark, topics, topic, **{"kafka.isolation.level": "read_committed"})
    assert [row.value for row in committed.collect()] == [b"kept"]
    everything = read(spark, topics, topic)
    assert [row.value for row in everything.orderBy("offset").collect()] == [b"kept", *[b"dropped"] * 3]
    # Offset 1 is the marker of the first transaction: a range of nothing but control records is empty, not endless.
    only_marker = {"startingOffsets": json.dumps({topic: {"0": 1}}), "endingOffsets": json.dumps({topic: {"0": 2}})}
    assert read(spark, topics, topic, **only_marker).count() == 0


def test_tasks_are_as_many_as_asked_for(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create(partitions=2)
    topics.produce(topic, [b"x"] * 100, partition=0)
    topics.produce(topic, [b"x"] * 10, partition=1)
    assert read(spark, topics, topic).rdd.getNumPartitions() == 2
    frame = read(spark, topics, topic, minPartitions="6")
    assert frame.rdd.getNumPartitions() == 6
    assert frame.count() == 110
    assert read(spark, topics, topic, maxRecordsPerPartition="50").rdd.getNumPartitions() == 3


def test_a_pattern_takes_all_topics_that_match_whole(spark: SparkSession, topics: Topics) -> None:
    prefix = topics.name("pattern")
    for suffix in ("-a", "-b", "-b-not"):
        topics.create_named(prefix + suffix)
        topics.produce(prefix + suffix, [suffix.encode()])
    frame = read(spark, topics, None, subscribePattern=f"{prefix}-[ab]")
    assert sorted(row.value for row in frame.collect()) == [b"-a", b"-b"]


def test_partitions_may_be_assigned(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create(partitions=3)
    for partition in range(3):
        topics.produce(topic, [b"%d" % partition], partition=partition)
    frame = read(spark, topics, None, assign=json.dumps({topic: [0, 2]}))
    assert sorted(row.value for row in frame.collect()) == [b"0", b"2"]


def test_lost_records_are_reported_exactly(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create()
    topics.produce(topic, [b"%d" % index for index in range(10)])
    topics.delete_records(topic, 0, before=4)
    start = json.dumps({topic: {"0": 1}})
    with pytest.raises(Exception, match=r"partition 0: offsets 1 to 3, up to 3 records"):
        read(spark, topics, topic, startingOffsets=start).count()
    assert read(spark, topics, topic, startingOffsets=start, failOnDataLoss="false").count() == 6


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"startingOffsets": "latest"}, "a batch read cannot start at the latest offset"),
        ({"minPartitions": "none"}, "minPartitions = 'none': allowed is a whole number above 0"),
        ({"kafka.acks.of.mine": "1"}, "acks.of.mine"),
        ({"kafka.auto.offset.reset": "latest"}, "kafka.auto.offset.reset = 'latest': it cannot be set"),
        ({"startingOffset": "earliest"}, "startingOffsets was probably meant"),
    ],
)
def test_wrong_options_are_named(spark: SparkSession, topics: Topics, options: dict[str, str], told: str) -> None:
    topic = topics.create()
    with pytest.raises(Exception, match=told):
        read(spark, topics, topic, **options).collect()


def test_a_missing_topic_is_an_error_and_is_not_made(spark: SparkSession, topics: Topics) -> None:
    with pytest.raises(Exception, match="there is no nowhere-to-be-found"):
        read(spark, topics, "nowhere-to-be-found").collect()
    assert "nowhere-to-be-found" not in topics.admin.list_topics().topics


def test_fewer_columns_may_be_asked_for(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create()
    topics.produce(topic, [b"a", b"b"])
    reader = spark.read.format("moldau").schema("offset bigint, value binary")
    frame = reader.options(**{"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic}).load()
    assert [tuple(row) for row in frame.orderBy("offset").collect()] == [(0, b"a"), (1, b"b")]
