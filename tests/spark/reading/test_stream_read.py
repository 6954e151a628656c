"""`spark.readStream.format("moldau")` against a real broker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WAIT_S = 120


def stream(spark: SparkSession, topics: Topics, **options: Any) -> DataFrame:
    defaults = {"kafka.bootstrap.servers": topics.bootstrap, "startingOffsets": "earliest"}
    return spark.readStream.format("moldau").options(**{**defaults, **options}).load()


class Sink:
    """What a query has delivered: one list of values for each batch, in the driver."""

    def __init__(self) -> None:
        self.batches: list[list[bytes | None]] = []

    def __call__(self, frame: DataFrame, _batch: int) -> None:
        self.batches.append([row.value for row in frame.orderBy("topic", "partition", "offset").collect()])

    @property
    def values(self) -> list[bytes | None]:
        return [value for batch in self.batches for value in batch]


def run_once(frame: DataFrame, checkpoint: Path, *, name: str | None = None) -> tuple[Sink, StreamingQuery]:
    """All that is available, to the end."""
    sink = Sink()
    writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    if name is not None:
        writer = writer.queryName(name)
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(WAIT_S)
    return sink, query


def wait_until(holds: Callable[[], bool], query: StreamingQuery) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)


def test_batches_are_limited_and_nothing_is_read_twice(spark: SparkSession, topics: Topics, checkpoint: Path) -> None:
    topic = topics.create(partitions=2)
    topics.produce(topic, [b"%d" % index for index in range(90)], partition=0)
    topics.produce(topic, [b"%d" % index for index in range(90, 100)], partition=1)
    frame = stream(spark, topics, subscribe=topic, maxOffsetsPerTrigger="40")
    first, query = run_once(frame, checkpoint)
    assert [len(batch) for batch in first.batches] == [40, 40, 20]
    assert sorted(int(value or b"") for value in first.values) == list(range(100))
    last = json.loads(query.recentProgress[-1].sources[0].json)
    assert json.loads(json.dumps(last["endOffset"]))[topic] == {"0": 90, "1": 10}
    assert last["latestOffset"] == {topic: {"0": 90, "1": 10}}

    topics.produce(topic, [b"100"], partition=1)
    again, _ = run_once(frame, checkpoint)
    assert again.values == [b"100"]


def test_offsets_are_committed_to_a_group_named_after_the_query(
    spark: SparkSession, topics: Topics, checkpoint: Path
) -> None:
    topic = topics.create(partitions=2)
    topics.produce(topic, [b"x"] * 7, partition=1)
    name = topics.name("query")
    run_once(stream(spark, topics, subscribe=topic), checkpoint, name=name)
    group = f"moldau-spark-{name}"
    assert topics.group_offsets(group) == {(topic, 0): 0, (topic, 1): 7}
    assert not [each for each in topics.groups() if each.startswith("moldau-spark-run-")]

    unnamed = checkpoint.with_name("unnamed")
    _, query = run_once(stream(spark, topics, subscribe=topic), unnamed)
    assert topics.group_offsets(f"moldau-spark-{query.id}") == {(topic, 0): 0, (topic, 1): 7}

    chosen = topics.name("group")
    run_once(stream(spark, topics, subscribe=topic, groupId=chosen), checkpoint.with_name("chosen"))
    assert topics.group_offsets(chosen) == {(topic, 0): 0, (topic, 1): 7}


def test_topics_and_partitions_appear_while_a_query_runs(spark: SparkSession, topics: Topics, checkpoint: Path) -> None:
    prefix = topics.name("growing")
    first = topics.create_named(f"{prefix}-a")
    topics.produce(first, [b"a0"])
    sink = Sink()
    frame = stream(spark, topics, subscribePattern=f"{prefix}-.*")
    query = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint)).start()
    try:
        wait_until(lambda: sink.values == [b"a0"], query)
        second = topics.create_named(f"{prefix}-b", partitions=2)
        topics.produce(second, [b"b1"], partition=1)
        wait_until(lambda: b"b1" in sink.values, query)
        topics.add_partitions(first, 2)
        topics.produce(first, [b"a1"], partition=1)
        wait_until(lambda: b"a1" in sink.values, query)
    finally:
        query.stop()
    assert sink.values == [b"a0", b"b1", b"a1"]


def test_a_query_that_was_overtaken_by_retention(spark: SparkSession, topics: Topics, checkpoint: Path) -> None:
    topic = topics.create()
    topics.produce(topic, [b"%d" % index for index in range(5)])
    run_once(stream(spark, topics, subscribe=topic), checkpoint)
    topics.produce(topic, [b"%d" % index for index in range(5, 10)])
    topics.delete_records(topic, 0, before=8)
    with pytest.raises(Exception, match=r"partition 0: offsets 5 to 7, up to 3 records"):
        run_once(stream(spark, topics, subscribe=topic), checkpoint)
    sink, _ = run_once(stream(spark, topics, subscribe=topic, failOnDataLoss="false"), checkpoint)
    assert sink.values == [b"8", b"9"]


def test_a_topic_that_goes_and_comes_back(spark: SparkSession, topics: Topics, checkpoint: Path) -> None:
    topic = topics.create()
    topics.produce(topic, [b"old"])
    frame = stream(spark, topics, subscribe=topic, failOnDataLoss="false")
    run_once(frame, checkpoint)
    topics.delete(topic)
    assert run_once(frame, checkpoint)[0].values == []
    topics.create_named(topic)
    topics.produce(topic, [b"new", b"newer"])
    assert run_once(frame, checkpoint)[0].values == [b"new", b"newer"]


def test_a_topic_made_anew_under_a_running_query(spark: SparkSession, topics: Topics, checkpoint: Path) -> None:
    """It has more records than the query had read, so that offsets alone look as if nothing had happened."""
    topic = topics.create()
    topics.produce(topic, [b"old"] * 3)
    sink = Sink()

    def started(**options: str) -> StreamingQuery:
        frame = stream(spark, topics, subscribe=topic, **options)
        return frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint)).start()

    def batches(notes: str) -> set[str]:
        return {path.name for path in (checkpoint / notes).glob("[0-9]*")}

    query = started(failOnDataLoss="false")
    try:
        wait_until(lambda: sink.values == [b"old"] * 3, query)
        topics.delete(topic)
        topics.create_named(topic)
        topics.produce(topic, [b"new-%d" % index for index in range(10)])
        wait_until(lambda: len(sink.values) >= 13 and batches("commits") == batches("offsets"), query)
    finally:
        query.stop()
    assert sorted(value or b"" for value in sink.values[3:]) == [b"new-%d" % index for index in range(10)]

    topics.delete(topic)
    topics.create_named(topic)
    topics.produce(topic, [b"newest"] * 20)
    with pytest.raises(Exception, match="the topic was deleted and made anew"):
        run_once(stream(spark, topics, subscribe=topic), checkpoint)
    again, _ = run_once(stream(spark, topics, subscribe=topic, failOnDataLoss="false"), checkpoint)
    assert again.values == [b"newest"] * 20


def test_committed_records_only(spark: SparkSession, topics: Topics, checkpoint: Path) -> None:
    topic = topics.create()
    topics.transaction(topic, [b"kept"], commit=True)
    topics.transaction(topic, [b"dropped"], commit=False)
    frame = stream(spark, topics, subscribe=topic, **{"kafka.isolation.level": "read_committed"})
    assert run_once(frame, checkpoint)[0].values == [b"kept"]
    topics.transaction(topic, [b"kept too"], commit=True)
    assert run_once(frame, checkpoint)[0].values == [b"kept too"]


def test_a_batch_waits_for_enough_records_but_not_for_ever(
    spark: SparkSession, topics: Topics, checkpoint: Path
) -> None:
    topic = topics.create()
    topics.produce(topic, [b"first"])
    sink = Sink()
    frame = stream(spark, topics, subscribe=topic, minOffsetsPerTrigger="3", maxTriggerDelay="10s")
    query = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint)).start()
    try:
        wait_until(lambda: sink.batches == [[b"first"]], query)
        topics.produce(topic, [b"1"])
        topics.produce(topic, [b"2"])
        topics.produce(topic, [b"3"])
        wait_until(lambda: len(sink.values) == 4, query)
        topics.produce(topic, [b"late"])
        wait_until(lambda: sink.values[-1] == b"late", query)
    finally:
        query.stop()
    assert sink.batches[-1] == [b"late"]


def test_a_stream_refuses_an_end(spark: SparkSession, topics: Topics, checkpoint: Path) -> None:
    topic = topics.create()
    with pytest.raises(Exception, match="a stream has no end"):
        run_once(stream(spark, topics, subscribe=topic, endingOffsets="latest"), checkpoint)
