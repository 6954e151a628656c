"""What the stream reader tells Spark, asked as Spark asks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from moldau.spark.offsets.bounds import TOPIC_IDS
from moldau.spark.reading.data_loss import DataLossError, TopicMadeAnew
from moldau.spark.source import MoldauDataSource
from tests.spark.topics import Topics


def reader_of(topics: Topics, topic: str, **options: str) -> DataSourceStreamReader:
    given = {"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic, "startingOffsets": "earliest", **options}
    source = MoldauDataSource(given)
    return source.streamReader(source.schema())


def values(reader: DataSourceStreamReader, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[bytes]:
    return read(reader, reader.partitions(dict(start), dict(end)))


def read(reader: DataSourceStreamReader, tasks: Sequence[InputPartition]) -> list[bytes]:
    batches: list[Any] = [batch for task in tasks for batch in reader.read(task)]
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def make_anew(topics: Topics, topic: str, records: list[bytes]) -> None:
    topics.delete(topic)
    topics.create_named(topic)
    topics.produce(topic, records)


def test_a_stream_that_starts_at_the_end_starts_at_one_end(topics: Topics) -> None:
    """Spark asks for the start once to find the first batch's end, and once more to plan its tasks."""
    topic = topics.create()
    source = MoldauDataSource({"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic})
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    topics.produce(topic, [b"written in between"])
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert (start[topic], end[topic]) == ({"0": 0}, {"0": 1})
    topics.produce(topic, [b"and after"])
    assert reader.initialOffset() == start
    assert len(reader.partitions(reader.initialOffset(), end)) == 1


def test_a_topic_made_anew_is_noticed_though_it_has_more_records_than_before(topics: Topics) -> None:
    topic = topics.create()
    topics.produce(topic, [b"old"] * 3)
    reader = reader_of(topics, topic)
    start = reader.initialOffset()
    done = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert values(reader, start, done) == [b"old"] * 3

    make_anew(topics, topic, [b"new"] * 5)
    end = reader.latestOffset(done, reader.getDefaultReadLimit())
    assert end[topic] == {"0": 5}
    with pytest.raises(DataLossError, match=r"partition 0: offsets 3 to 3.*the topic was deleted and made anew"):
        reader.partitions(done, end)
    assert values(reader_of(topics, topic, failOnDataLoss="false"), done, end) == [b"new"] * 5
    # From there on it is a topic like any other.
    assert reader.latestOffset(end, reader.getDefaultReadLimit()) == end
    assert values(reader, end, end) == []


def test_a_batch_that_was_planned_on_the_topic_before_reads_nothing_of_the_new_one(topics: Topics) -> None:
    topic = topics.create()
    topics.produce(topic, [b"old"] * 3)
    reader = reader_of(topics, topic)
    start = reader.initialOffset()
    planned = reader.latestOffset(start, reader.getDefaultReadLimit())
    make_anew(topics, topic, [b"new"] * 5)
    with pytest.raises(DataLossError, match=r"offsets 0 to 2, up to 3 records .the topic was deleted after"):
        reader.partitions(start, planned)
    careless = reader_of(topics, topic, failOnDataLoss="false")
    assert values(careless, start, planned) == []
    end = careless.latestOffset(planned, careless.getDefaultReadLimit())
    assert values(careless, planned, end) == [b"new"] * 5


@pytest.mark.parametrize("by", ["auto", "librdkafka"])
def test_a_topic_made_anew_under_a_planned_task_is_noticed_by_the_task(topics: Topics, by: str) -> None:
    """Records are asked for by the topic's name: at the same offsets there are others by then."""
    topic = topics.create()
    topics.produce(topic, [b"old"] * 3)
    reader, careless = (reader_of(topics, topic, reader=by, failOnDataLoss=fails) for fails in ("true", "false"))
    start = reader.initialOffset()
    planned = reader.latestOffset(start, reader.getDefaultReadLimit())
    tasks = reader.partitions(start, planned)
    make_anew(topics, topic, [b"new"] * 5)
    with pytest.raises(
        DataLossError, match=r"offsets 0 to 2, up to 3 records .the topic was deleted and made anew while"
    ):
        read(reader, tasks)
    # Rows of the new topic may be on their way to the sink: the task fails, and run again the batch knows better.
    with pytest.raises(TopicMadeAnew, match="nothing of this batch counts"):
        read(careless, tasks)
    assert values(careless, start, planned) == []


@pytest.mark.parametrize("by", ["auto", "librdkafka"])
def test_a_topic_made_anew_that_is_shorter_is_lost_as_the_option_says(topics: Topics, by: str) -> None:
    topic = topics.create()
    topics.produce(topic, [b"old"] * 5)
    reader = reader_of(topics, topic, reader=by, failOnDataLoss="false")
    ids = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())[TOPIC_IDS]
    tasks = reader.partitions({topic: {"0": 3}, TOPIC_IDS: ids}, {topic: {"0": 5}, TOPIC_IDS: ids})
    make_anew(topics, topic, [b"new"])
    assert read(reader, tasks) == []


def test_a_checkpoint_without_topic_ids_goes_on(topics: Topics) -> None:
    """As versions before this wrote them."""
    topic = topics.create()
    topics.produce(topic, [b"%d" % index for index in range(5)])
    reader = reader_of(topics, topic)
    end = reader.latestOffset({topic: {"0": 3}}, reader.getDefaultReadLimit())
    assert end[topic] == {"0": 5}
    assert set(end[TOPIC_IDS]) == {topic}
    assert values(reader, {topic: {"0": 3}}, end) == [b"3", b"4"]
    assert values(reader, {topic: {"0": 3}}, {topic: {"0": 4}}) == [b"3"]


def test_a_topic_that_is_deleted_under_a_planned_batch_is_lost_and_no_error_of_its_own(topics: Topics) -> None:
    topic, other = topics.create(), topics.create()
    topics.produce(topic, [b"old"] * 3)
    reader = reader_of(topics, f"{topic},{other}", failOnDataLoss="false")
    start = reader.initialOffset()
    planned = reader.latestOffset(start, reader.getDefaultReadLimit())
    topics.delete(topic)
    assert values(reader, start, planned) == []


def test_a_batch_from_before_a_lower_limit_gets_smaller_tasks(topics: Topics) -> None:
    """What is in the checkpoint has to be read whole; a task and its transaction need not be as large."""
    topic = topics.create()
    topics.produce(topic, [b"%d" % each for each in range(10)])
    options = {"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic, "maxOffsetsPerTrigger": "4"}
    source = MoldauDataSource(options)
    tasks = source.streamReader(source.schema()).partitions({topic: {"0": 0}}, {topic: {"0": 10}})
    assert [(task.value.start, task.value.end) for task in tasks] == [(0, 3), (3, 6), (6, 10)]
