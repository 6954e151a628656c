"""The core of it against Apache Kafka, which the source and the sink have to work with unchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.brokers import running_broker
from tests.spark.reading.test_batch_read import read
from tests.spark.reading.test_stream_read import run_once, stream
from tests.spark.topics import Topics
from tests.spark.writing.test_sink import forget_last_commit, stream_copy, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def apache() -> Iterator[Topics]:
    with running_broker("apache") as bootstrap:
        yield Topics(bootstrap)


def test_frames_and_transactions(spark: SparkSession, apache: Topics) -> None:
    topic = apache.create(partitions=2)
    frame = spark.range(500).selectExpr("cast(id as string) as key", "cast(id as string) as value")
    write(frame, apache, topic=topic, delivery="exactly-once")
    apache.transaction(topic, [b"dropped"] * 3, commit=False)
    for reader in ("auto", "librdkafka"):
        committed = read(spark, apache, topic, reader=reader, **{"kafka.isolation.level": "read_committed"})
        assert sorted(int(row.value) for row in committed.collect()) == list(range(500))
        assert read(spark, apache, topic, reader=reader).count() == 503


def test_a_batch_that_runs_again_is_there_once(spark: SparkSession, apache: Topics, checkpoint: Path) -> None:
    source, target = apache.create(partitions=2), apache.create(partitions=2)
    apache.produce(source, [b"%d" % index for index in range(150)])
    stream_copy(spark, apache, source, checkpoint, topic=target)
    forget_last_commit(checkpoint)
    stream_copy(spark, apache, source, checkpoint, topic=target)
    assert Counter(apache.values(target)) == Counter(b"%d" % index for index in range(150))


def test_lag_is_visible(spark: SparkSession, apache: Topics, checkpoint: Path) -> None:
    topic = apache.create()
    apache.produce(topic, [b"x"] * 7)
    name = apache.name("query")
    sink, _ = run_once(stream(spark, apache, subscribe=topic), checkpoint, name=name)
    assert len(sink.values) == 7
    assert apache.group_offsets(f"moldau-spark-{name}") == {(topic, 0): 7}
