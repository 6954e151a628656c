"""Spark's own connector for Kafka against the broker, as its users use it: batch and streaming, to and from topics."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.stock.running import JobFailed, JobRunner
from tests.spark.topics import Topics

pytestmark = [pytest.mark.xdist_group("spark-stock"), pytest.mark.timeout(900)]

WAIT_S = 120.0
BEGIN_MS = 1_700_000_000_000


def source(topics: Topics, topic: str, **options: Any) -> dict[str, Any]:
    return {
        "kafka.bootstrap.servers": topics.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        **options,
    }


def sink(topics: Topics, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": topics.bootstrap, "topic": topic}


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)


def test_it_is_the_version_that_users_have(stock: JobRunner) -> None:
    assert stock.call("version") == "4.0.0"


def test_a_batch_read_gives_every_column(stock: JobRunner, topics: Topics) -> None:
    topic = topics.create(partitions=2)
    topics.produce(topic, [b"a"], key=b"k", partition=0, timestamp=BEGIN_MS, headers=[("h", b"1"), ("none", None)])
    topics.produce(topic, [b"b", None], partition=1, timestamp=BEGIN_MS + 1)
    rows = stock.call("read", options=source(topics, topic, includeHeaders="true"))
    same = {"topic": topic, "timestampType": 0}
    assert rows == [
        {**same, "partition": 0, "offset": 0, "key": "k", "value": "a", "timestamp": BEGIN_MS,
         "headers": [["h", "1"], ["none", None]]},
        {**same, "partition": 1, "offset": 0, "key": None, "value": "b", "timestamp": BEGIN_MS + 1, "headers": []},
        {**same, "partition": 1, "offset": 1, "key": None, "value": None, "timestamp": BEGIN_MS + 1, "headers": []},
    ]  # fmt: skip


def test_the_broker_s_own_time_is_told_from_the_producer_s(stock: JobRunner, topics: Topics) -> None:
    topic = topics.create(config={"message.timestamp.type": "LogAppendTime"})
    topics.produce(topic, [b"a"], timestamp=BEGIN_MS)
    (row,) = stock.call("read", options=source(topics, topic))
    assert row["timestampType"] == 1
    assert row["timestamp"] > BEGIN_MS


def test_a_batch_write_with_headers_keys_and_partitions(stock: JobRunner, topics: Topics) -> None:
    one, two = topics.create(partitions=3), topics.create()
    stock.call(
        "write",
        rows=[[one, 2, "a", "x"], [one, 0, "b", "y"], [two, None, None, "z"]],
        schema="topic string, partition int, key string, value string",
        expressions=["*", "array(struct('h' as key, cast(value as binary) as value)) as headers"],
        options={"kafka.bootstrap.servers": topics.bootstrap, "includeHeaders": "true"},
    )
    assert [(row.partition, row.key, row.value, row.headers) for row in topics.rows(one)] == [
        (0, b"b", b"y", (("h", b"y"),)),
        (2, b"a", b"x", (("h", b"x"),)),
    ]
    assert topics.values(two) == [b"z"]


def test_offsets_and_times_bound_a_batch(stock: JobRunner, topics: Topics) -> None:
    topic = topics.create()
    for second in range(10):
        topics.produce(topic, [b"%d" % second], timestamp=BEGIN_MS + second * 1000)

    def values(**options: Any) -> list[str]:
        return [row["value"] for row in stock.call("read", options=source(topics, topic, **options))]

    between = {"startingOffsets": json.dumps({topic: {"0": 2}}), "endingOffsets": json.dumps({topic: {"0": 5}})}
    assert values(**between) == ["2", "3", "4"]
    assert values(startingOffsetsByTimestamp=json.dumps({topic: {"0": BEGIN_MS + 6500}})) == ["7", "8", "9"]
    assert values(endingOffsetsByTimestamp=json.dumps({topic: {"0": BEGIN_MS + 2000}})) == ["0", "1"]
    assert values(startingTimestamp=str(BEGIN_MS + 9000)) == ["9"]
    assert values(minPartitions="4") == [str(second) for second in range(10)]


def test_patterns_and_assignments(stock: JobRunner, topics: Topics) -> None:
    prefix = topics.name("pattern")
    for suffix in ("-a", "-b", "-c"):
        topics.create_named(prefix + suffix, partitions=2)
        topics.produce(prefix + suffix, [suffix.encode()], partition=1)
    common = {"kafka.bootstrap.servers": topics.bootstrap}
    rows = stock.call("read", options={**common, "subscribePattern": f"{prefix}-[ab]"})
    assert [row["value"] for row in rows] == ["-a", "-b"]
    rows = stock.call("read", options={**common, "assign": json.dumps({f"{prefix}-a": [0], f"{prefix}-c": [1]})})
    assert [row["value"] for row in rows] == ["-c"]


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_transactions(stock: JobRunner, topics: Topics, tmp_path: Path, isolation: str) -> None:
    topic = topics.create()
    topics.transaction(topic, [b"kept"], commit=True)
    topics.transaction(topic, [b"dropped"] * 3, commit=False)
    topics.produce(topic, [b"plain"])
    expected = ["kept", "plain"] if isolation == "read_committed" else ["kept", *["dropped"] * 3, "plain"]
    options = source(topics, topic, **{"kafka.isolation.level": isolation})
    assert [row["value"] for row in stock.call("read", options=options)] == expected
    found = stock.call("read_available", options=options, checkpoint=str(tmp_path / "checkpoint"))
    assert [row["value"] for batch in found["batches"] for row in batch] == expected


def test_available_now_ends_and_goes_on_from_there(stock: JobRunner, topics: Topics, tmp_path: Path) -> None:
    topic = topics.create(partitions=2)
    for partition in range(2):
        topics.produce(topic, [b"%d" % each for each in range(50)], partition=partition)
    options = source(topics, topic, maxOffsetsPerTrigger=40)
    first = stock.call("read_available", options=options, checkpoint=str(tmp_path / "checkpoint"))
    assert [len(batch) for batch in first["batches"]] == [40, 40, 20]
    assert first["end"] == {topic: {"0": 50, "1": 50}}
    topics.produce(topic, [b"more"], partition=1)
    again = stock.call("read_available", options=options, checkpoint=str(tmp_path / "checkpoint"))
    assert [[row["value"] for row in batch] for batch in again["batches"]] == [["more"]]


def test_a_stream_starts_at_a_time(stock: JobRunner, topics: Topics, tmp_path: Path) -> None:
    topic = topics.create()
    for second in range(4):
        topics.produce(topic, [b"%d" % second], timestamp=BEGIN_MS + second * 1000)
    options = source(topics, topic, startingOffsetsByTimestamp=json.dumps({topic: {"0": BEGIN_MS + 1500}}))
    found = stock.call("read_available", options=options, checkpoint=str(tmp_path / "checkpoint"))
    assert [row["value"] for batch in found["batches"] for row in batch] == ["2", "3"]


def test_topic_to_topic_while_records_arrive(stock: JobRunner, topics: Topics, tmp_path: Path) -> None:
    come, gone = topics.create(partitions=2), topics.create(partitions=2)
    topics.produce(come, [b"%d" % each for each in range(100)])
    paths = {"source": source(topics, come), "sink": sink(topics, gone), "checkpoint": str(tmp_path / "checkpoint")}
    stock.call("start_copy", **paths, every="500 milliseconds")
    try:
        wait_until(lambda: len(topics.values(gone)) >= 100)
        topics.add_partitions(come, 3)
        topics.produce(come, [b"%d" % each for each in range(100, 150)], partition=2)
        wait_until(lambda: len(topics.values(gone)) >= 150)
    finally:
        stock.call("end_copy", stop=True)
    topics.produce(come, [b"%d" % each for each in range(150, 200)])
    stock.call("start_copy", **paths)
    stock.call("end_copy", stop=False)
    assert Counter(topics.values(gone)) == Counter(b"%d" % each for each in range(200))


def test_state_that_is_kept_between_batches(stock: JobRunner, topics: Topics, tmp_path: Path) -> None:
    come, gone = topics.create(), topics.create()
    paths = {"source": source(topics, come), "sink": sink(topics, gone), "checkpoint": str(tmp_path / "checkpoint")}
    for _ in range(2):
        topics.produce(come, [b"x"] * 3, key=b"a")
        topics.produce(come, [b"x"] * 2, key=b"b")
        stock.call("count_by_key", **paths)
    last = {row.key: row.value for row in topics.rows(gone)}
    assert last == {b"a": b"6", b"b": b"4"}


def test_lost_records_are_noticed(stock: JobRunner, topics: Topics, tmp_path: Path) -> None:
    topic = topics.create()
    topics.produce(topic, [b"%d" % each for each in range(10)])
    checkpoint = str(tmp_path / "checkpoint")
    stock.call("read_available", options=source(topics, topic), checkpoint=checkpoint)
    topics.produce(topic, [b"%d" % each for each in range(10, 20)])
    topics.delete_records(topic, 0, before=15)
    with pytest.raises(JobFailed, match=r"(?i)data loss|no longer|out of range|aged out"):
        stock.call("read_available", options=source(topics, topic), checkpoint=checkpoint)
    options = source(topics, topic, failOnDataLoss="false")
    found = stock.call("read_available", options=options, checkpoint=checkpoint)
    assert [row["value"] for batch in found["batches"] for row in batch] == [str(each) for each in range(15, 20)]


def test_much_data_comes_back_as_it_went(stock: JobRunner, topics: Topics) -> None:
    topic = topics.create(partitions=3)
    rows = [[f"{each}", "v" * (each % 500)] for each in range(20_000)]
    options = {**sink(topics, topic), "kafka.compression.type": "lz4"}
    stock.call("write", rows=rows, schema="key string, value string", expressions=["*"], options=options)
    found = stock.call("read", options=source(topics, topic))
    assert Counter((row["key"], row["value"]) for row in found) == Counter((key, value) for key, value in rows)
