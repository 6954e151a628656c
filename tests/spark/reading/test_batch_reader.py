"""What the batch reader's tasks read, asked as Spark asks them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from moldau.spark.source import MoldauDataSource
from tests.spark.topics import Topics


def read(reader: DataSourceReader, task: InputPartition) -> list[bytes]:
    batches: list[Any] = list(reader.read(task))
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def test_a_partition_that_gets_its_first_record_between_two_tasks(topics: Topics) -> None:
    """Each task of a read anew looks for itself at what is there; none may take or leave what is another's."""
    topic = topics.create(partitions=4)
    for partition in (1, 2, 3):
        topics.produce(topic, [b"old-%d" % partition], partition=partition)
    options = {"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic, "readAnew": "true"}
    source = MoldauDataSource(options)
    reader = source.reader(source.schema())
    tasks = reader.partitions()
    values: Counter[bytes] = Counter()
    for number, task in enumerate(tasks):
        values.update(read(reader, task))
        if number == 0:
            topics.produce(topic, [b"new"], partition=0)
    assert {value for value in values if value.startswith(b"old")} == {b"old-1", b"old-2", b"old-3"}
    assert set(values.values()) == {1}

    assert sorted(value for task in tasks for value in read(reader, task)) == [b"new", b"old-1", b"old-2", b"old-3"]
