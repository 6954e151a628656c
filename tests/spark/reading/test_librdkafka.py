"""Ranges read by librdkafka, where records are large once they are unpacked."""

from __future__ import annotations

import threading
import time
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ClientPartition

from moldau.core.ids import TopicPartition
from moldau.spark.clients.librdkafka import NoAnswer
from moldau.spark.offsets.bounds import OffsetRange
from moldau.spark.reading import librdkafka
from moldau.spark.reading.librdkafka import portions, read_by_library
from moldau.spark.reading.range_settings import RangeReading
from tests.spark.topics import ANSWER_S_MAX, Topics


def test_messages_are_cut_into_batches_by_their_bytes(topics: Topics) -> None:
    """Ten thousand of them at once may be beyond what one Arrow column can hold."""
    topic = topics.create()
    topics.produce(topic, [bytes(100)] * 5, key=b"k" * 50, headers=[("h", bytes(49))])
    consumer = Consumer({"bootstrap.servers": topics.bootstrap, "group.id": "unused", "enable.auto.commit": "false"})
    consumer.assign([ClientPartition(topic, 0, 0)])
    messages: list[Any] = []
    deadline = time.monotonic() + ANSWER_S_MAX
    while len(messages) < 5 and time.monotonic() < deadline:
        messages += consumer.consume(5, 1.0)
    consumer.close()

    def sizes(*, counts_headers: bool, portion_bytes: int) -> list[int]:
        return [len(some) for some in portions(messages, counts_headers=counts_headers, portion_bytes=portion_bytes)]

    assert sizes(counts_headers=False, portion_bytes=300) == [2, 2, 1]
    assert sizes(counts_headers=True, portion_bytes=200) == [1] * 5
    assert sizes(counts_headers=True, portion_bytes=10_000) == [5]


def test_a_batch_that_unpacks_beyond_the_limit_is_named_with_the_limit(topics: Topics) -> None:
    topic = topics.create()
    producer = Producer(
        {
            "bootstrap.servers": topics.bootstrap,
            "compression.type": "zstd",
            "message.max.bytes": 10_000_000,
            "batch.size": 10_000_000,
            "linger.ms": 500,
        }
    )
    for _ in range(10):
        producer.produce(topic, bytes(500_000))
    assert producer.flush(ANSWER_S_MAX) == 0
    client = {
        "bootstrap.servers": topics.bootstrap,
        "fetch.max.bytes": "1000000",
        "max.partition.fetch.bytes": "1000000",
        "receive.message.max.bytes": "1000512",
    }
    reading = RangeReading(
        client=tuple(client.items()),
        columns=("value",),
        poll_timeout_ms=30_000,
        fails_on_data_loss=True,
        group="reader",
    )
    with pytest.raises(NoAnswer, match=r"larger than 1000512 bytes once unpacked, which is kafka\.receive\.message"):
        list(read_by_library(OffsetRange(TopicPartition(topic, 0), 0, 10), reading))


def test_an_end_that_is_told_among_records_is_no_record(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica that is behind its leader tells its own end, and the records that it lacked come right after."""
    topic = topics.create()
    topics.produce(topic, [b"first"] * 3)
    monkeypatch.setattr(librdkafka, "WAIT_S", ANSWER_S_MAX)  # the end and what follows it come in one piece
    reading = RangeReading(
        client=(("bootstrap.servers", topics.bootstrap),),
        columns=("offset", "value"),
        poll_timeout_ms=30_000,
        fails_on_data_loss=True,
        group="reader",
    )
    later = threading.Timer(1.0, topics.produce, (topic, [b"more"] * 3))
    later.start()
    found = pa.Table.from_batches(read_by_library(OffsetRange(TopicPartition(topic, 0), 0, 6), reading))
    later.join()
    assert found.to_pydict() == {"offset": [0, 1, 2, 3, 4, 5], "value": [b"first"] * 3 + [b"more"] * 3}
