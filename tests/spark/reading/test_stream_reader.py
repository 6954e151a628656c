"""What the stream reader tells Spark, asked as Spark asks it."""

from __future__ import annotations

from moldau.spark.source import MoldauDataSource
from tests.spark.topics import Topics


def test_a_stream_that_starts_at_the_end_starts_at_one_end(topics: Topics) -> None:
    """Spark asks for the start once to find the first batch's end, and once more to plan its tasks."""
    topic = topics.create()
    source = MoldauDataSource({"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic})
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    topics.produce(topic, [b"written in between"])
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert (start, end) == ({topic: {"0": 0}}, {topic: {"0": 1}})
    topics.produce(topic, [b"and after"])
    assert reader.initialOffset() == start
    assert len(reader.partitions(reader.initialOffset(), end)) == 1
