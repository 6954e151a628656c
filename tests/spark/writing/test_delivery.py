"""Deliveries asked for as a task asks for them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec

import moldau
from moldau.spark.option_values import OptionError
from moldau.spark.options import SinkOptions, sink_options
from moldau.spark.writing.delivery import end_open, write_at_least_once, write_exactly_once
from moldau.spark.writing.plain_delivery import PlainTransaction, opened_plainly
from moldau.spark.writing.producing import Written
from moldau.spark.writing.rows_to_records import to_records
from moldau.spark.writing.sink import MoldauWriter, RunsSeen
from moldau.spark.writing.task_progress import BatchChanged, Fenced, SinkTask, TransactionExpired
from tests.spark.topics import ANSWER_S_MAX, Topics

WRITERS = ("auto", "librdkafka")


def options(topics: Topics, topic: str, writer: str, **more: str) -> SinkOptions:
    own = {"kafka.bootstrap.servers": topics.bootstrap, "topic": topic, "writer": writer, "kafka.batch.size": "1"}
    return sink_options({**own, **more}, streaming=True)


def sink_task() -> SinkTask:
    return SinkTask(uuid.uuid4().hex, batch=0, task=0)


def rows(*values: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})


def slow_rows(topics: Topics, topic: str) -> Iterator[pa.RecordBatch]:
    """Two batches of rows, the second when the cluster has aborted the transaction that the first is in."""
    yield rows(b"1")
    place, deadline_s = TopicPartition(topic, 0), time.monotonic() + ANSWER_S_MAX
    while True:
        asked = topics.admin.list_offsets({place: OffsetSpec.latest()}, isolation_level=IsolationLevel.READ_COMMITTED)
        if asked[place].result(ANSWER_S_MAX).offset > 1:
            break
        assert time.monotonic() < deadline_s, "the transaction was not aborted"
        time.sleep(0.1)
    yield rows(b"2")


@pytest.mark.parametrize("writer", WRITERS)
def test_a_transaction_whose_time_is_up_is_called_that_and_more_time_mends_it(topics: Topics, writer: str) -> None:
    topic, task = topics.create(), sink_task()
    short = options(topics, topic, writer, **{"kafka.transaction.timeout.ms": "1000"})
    began_s = time.monotonic()
    with pytest.raises(TransactionExpired, match=r"kafka\.transaction\.timeout\.ms = 1000 allows no more.*maxOffsets"):
        write_exactly_once(slow_rows(topics, topic), short, task)
    assert time.monotonic() - began_s < ANSWER_S_MAX
    assert topics.values(topic) == []
    longer = options(topics, topic, writer, **{"kafka.transaction.timeout.ms": "60000"})
    assert write_exactly_once(iter([rows(b"1"), rows(b"2")]), longer, task).written == Written(2, 2, b"1", b"2")
    assert topics.values(topic) == [b"1", b"2"]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_batch_that_comes_back_with_as_many_other_rows_is_noticed(topics: Topics, writer: str) -> None:
    topic, task = topics.create(), sink_task()
    write_exactly_once(iter([rows(b"1", b"2")]), options(topics, topic, writer), task)
    assert write_exactly_once(iter([rows(b"2"), rows(b"1")]), options(topics, topic, writer), task).written == Written()
    with pytest.raises(BatchChanged, match=r"batch 0 was written with 2 of 2 others"):
        write_exactly_once(iter([rows(b"3", b"4")]), options(topics, topic, writer), task)
    assert topics.values(topic) == [b"1", b"2"]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_batch_that_comes_back_with_its_rows_in_another_task_is_noticed(topics: Topics, writer: str) -> None:
    """Smaller tasks are what a transaction that took too long asks for, and a filter may leave one of them nothing."""
    topic, task = topics.name(), sink_task()
    said = options(topics, topic, writer)
    assert write_exactly_once(iter([]), said, task).rows == Written()
    assert topic not in topics.admin.list_topics().topics, "no rows need no topic"
    topics.create_named(topic, partitions=2)
    write_exactly_once(iter([rows(b"1", b"2")]), said, task)
    with pytest.raises(BatchChanged, match=r"has 0 records of 0 bytes, but batch 0 was written with 2 of 2"):
        write_exactly_once(iter([]), said, task)
    assert write_exactly_once(iter([]), said, replace(task, batch=1)).rows == Written()
    assert write_exactly_once(iter([]), said, replace(task, may_be_noted=False)).rows == Written()


def test_rows_that_name_their_topics_are_missed_as_well(topics: Topics) -> None:
    topic, task = topics.create(), sink_task()
    said = sink_options({"kafka.bootstrap.servers": topics.bootstrap}, streaming=True)
    named = rows(b"1").append_column("topic", pa.array([topic]))
    write_exactly_once(iter([named]), said, task)
    with pytest.raises(BatchChanged, match=r"has 0 records of 0 bytes, but batch 0 was written with 1 of 1"):
        write_exactly_once(iter([]), said, task)


def test_a_worker_knows_which_batches_are_the_first_of_a_run() -> None:
    seen = RunsSeen()
    assert [seen.is_first("run", batch) for batch in (7, 7, 8, 7)] == [True, True, False, True]
    assert [seen.is_first(None, batch) for batch in (1, 2)] == [True, True]
    assert seen.is_first("another", 8)


@pytest.mark.parametrize("writer", WRITERS)
def test_more_time_than_the_brokers_allow_is_refused(topics: Topics, writer: str) -> None:
    far = options(topics, topics.create(), writer, **{"kafka.transaction.timeout.ms": "999999999"})
    with pytest.raises(OptionError, match=r"kafka\.transaction\.timeout\.ms: the brokers allow no more"):
        write_exactly_once(iter([rows(b"1")]), far, sink_task())


@pytest.mark.parametrize("deliver", ["at-least-once", "exactly-once"])
def test_rows_beyond_the_users_buffer_wait_for_room(topics: Topics, deliver: str) -> None:
    """As they do in Java's producer; librdkafka refuses them."""
    topic, values = topics.create(), [b"%4d" % number + bytes(1_000) for number in range(500)]
    said = options(topics, topic, "librdkafka", **{"kafka.buffer.memory": "65536"})
    if deliver == "exactly-once":
        write_exactly_once(iter([rows(*values)]), said, sink_task())
    else:
        write_at_least_once(iter([rows(*values)]), said)
    assert topics.values(topic) == values


@pytest.mark.parametrize("partitions", [1, 0], ids=["of the query", "of its own"])
def test_a_task_that_is_at_it_while_its_job_fails_leaves_nothing(topics: Topics, partitions: int) -> None:
    """Spark ends the other tasks after the first has failed, and tells the driver before they have ended."""
    topic, prefix = topics.create(), topics.name("team")
    said = options(topics, topic, "auto", groupIdPrefix=prefix, delivery="exactly-once")
    writer, number = MoldauWriter(said), 1 - partitions
    task = SinkTask(writer.job, 0, number, prefix)

    def failing() -> Iterator[pa.RecordBatch]:
        yield rows(b"1")
        writer.abort([None] * (number + 1))
        yield rows(b"2")

    opened = opened_plainly(said.client, task, topic, in_any_topic=False)
    assert isinstance(opened, PlainTransaction)
    with pytest.raises(Fenced):
        opened.write(failing(), to_records(said), task, topic)
    assert topics.values(topic) == []
    assert not [group for group in topics.groups() if group.startswith(prefix)]


def test_a_job_that_failed_waits_once_for_a_cluster_that_is_gone() -> None:
    settings = {"kafka.delivery.timeout.ms": "1000"}
    with moldau.run() as broker:
        gone = sink_options(
            {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "t", **settings}, streaming=True
        )
        end_open(gone, [sink_task()])
    began_s = time.monotonic()
    end_open(gone, [sink_task() for _ in range(10)])
    assert time.monotonic() - began_s < 5
