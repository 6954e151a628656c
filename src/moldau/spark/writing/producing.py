"""Arrow batches handed to a producer: in bulk, within a bound on what waits to be sent, in order within a partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, KafkaException, Producer

from moldau.client.security import ClientSettings
from moldau.spark.clients.librdkafka import ANSWER_S_MAX, NoAnswer
from moldau.spark.writing.partitioning import can_choose, rows_by_partition
from moldau.spark.writing.rows_to_records import Records, RowsToRecords

RECORDS_PER_CALL = 10_000
WAITING_BYTES_MAX = 64 * 1024 * 1024  # what a task keeps in memory beside the Arrow batch it works on
WAITING_RECORDS_MAX = 200_000
FLUSH_S = 1.0
EXTREME_BYTES = 64

# Java's partitioner, so that a key goes where a Java producer sends it; the bounds above take the place of the queue's.
WRITING: dict[str, str | bool] = {
    "partitioner": "murmur2_random",
    "queue.buffering.max.messages": "10000000",
    "queue.buffering.max.kbytes": "2097151",
    "linger.ms": "20",
    "batch.size": "1000000",
    "batch.num.messages": "100000",
    "delivery.report.only.error": True,
}


# What a user sets as librdkafka's queue, `buffer.memory` in Java's words, bounds what waits here as well. The library
# is not told: it refuses a record for which there is no room, where Java's producer waits.
QUEUE_BYTES, QUEUE_RECORDS = "queue.buffering.max.kbytes", "queue.buffering.max.messages"


@dataclass(frozen=True, slots=True)
class Room:
    """What may wait to be sent."""

    size_bytes: int = WAITING_BYTES_MAX
    records: int = WAITING_RECORDS_MAX

    def for_records_of(self, average_bytes: int) -> int:
        return max(1, min(self.records, self.size_bytes // max(1, average_bytes)))


def room_of(settings: ClientSettings) -> Room:
    """librdkafka has looked at the values before."""
    given = dict(settings)
    return Room(
        min(WAITING_BYTES_MAX, int(given.get(QUEUE_BYTES, WAITING_BYTES_MAX // 1024)) * 1024),
        min(WAITING_RECORDS_MAX, int(given.get(QUEUE_RECORDS, WAITING_RECORDS_MAX))),
    )


def without_room(settings: ClientSettings) -> dict[str, str]:
    return {name: value for name, value in settings if name not in (QUEUE_BYTES, QUEUE_RECORDS)}


@dataclass(slots=True)
class Written:
    """What went out: what tells whether a batch that is run again is the same batch, in whatever order its rows come.

    `least` and `most` are of the values, shortened: two parts of one topic may well have as many records and bytes.
    `schemas` are a registry's ids of them, by side: the same rows are other bytes by another schema.
    """

    records: int = 0
    size_bytes: int = 0
    least: bytes | None = None
    most: bytes | None = None
    schemas: Mapping[str, int] = field(default_factory=dict)

    def add(self, records: Records) -> None:
        self.records += len(records)
        self.size_bytes += records.size_bytes
        extremes = pc.min_max(records.values)
        found = [each.as_py()[:EXTREME_BYTES] for each in (extremes["min"], extremes["max"]) if each.is_valid]
        if found:
            self.least = min(found if self.least is None else [*found, self.least])
            self.most = max(found if self.most is None else [*found, self.most])


class DeliveryFailures:
    """The first record that could not be written; the others say the same."""

    def __init__(self) -> None:
        self.first: KafkaError | None = None

    def __call__(self, error: KafkaError | None, _message: Any) -> None:
        if error is not None and self.first is None:
            self.first = error

    def raise_any(self) -> None:
        if self.first is not None:
            first, self.first = self.first, None
            raise NoAnswer(f"records could not be written: {first.str()}")


def produce(batches: Iterable[pa.RecordBatch], producer: Producer, shape: RowsToRecords, room: Room) -> Written:
    """Everything handed over when it returns, not everything sent: that is a flush or a commit."""
    written = Written(schemas=shape.schemas)
    partition_count = _partition_counts(producer)
    for batch in batches:
        for records in shape.records(batch):
            written.add(records)
            chooses = shape.chooses_partitions and can_choose(records.keys)
            for some in placed(records, partition_count) if chooses else (records,):
                _produce_records(producer, some, room)
    return written


def measure(batches: Iterable[pa.RecordBatch], shape: RowsToRecords) -> Written:
    """The same numbers without writing anything."""
    written = Written(schemas=shape.schemas)
    for batch in batches:
        for records in shape.records(batch):
            written.add(records)
    return written


def flush(producer: Producer, failures: DeliveryFailures) -> None:
    while producer.flush(FLUSH_S):
        failures.raise_any()
    failures.raise_any()


def _produce_records(producer: Producer, records: Records, room: Room) -> None:
    if not len(records):
        return
    waiting_max = room.for_records_of(records.size_bytes // len(records))
    for start in range(0, len(records), min(RECORDS_PER_CALL, waiting_max)):
        _wait_for_room(producer, waiting_max)
        length = min(RECORDS_PER_CALL, waiting_max, len(records) - start)
        if records.headers is None:
            _produce_bulk(producer, records, start, length)
        else:
            _produce_with_headers(producer, records, start, length)


def placed(records: Records, partition_count: Callable[[str], int]) -> Iterator[Records]:
    """The records with their partition, where it is ours to choose."""
    partitions = 0 if records.partition is not None or not len(records) else partition_count(records.topic)
    if partitions == 0:
        yield records
        return
    for partition, rows in rows_by_partition(records.keys, count=len(records), partitions=partitions):
        yield replace(records if rows is None else records.taken(rows), partition=partition)


def _partition_counts(producer: Producer) -> Callable[[str], int]:
    """Asked once for each topic of a task; none where librdkafka shall say what is wrong with the topic."""

    @lru_cache
    def count(topic: str) -> int:
        told = producer.list_topics(topic, timeout=ANSWER_S_MAX).topics[topic]
        return 0 if told.error is not None else len(told.partitions)

    return count


def _wait_for_room(producer: Producer, waiting_max: int) -> None:
    producer.poll(0)
    while len(producer) >= waiting_max:
        producer.poll(0.05)


def _produce_bulk(producer: Producer, records: Records, start: int, length: int) -> None:
    values = records.values.slice(start, length).to_pylist()
    if records.keys is None:
        messages = [{"value": value} for value in values]
    else:
        keys = records.keys.slice(start, length).to_pylist()
        messages = [{"key": key, "value": value} for key, value in zip(keys, values, strict=True)]
    # The library takes the partition of the call and disregards one in a message.
    partition = {} if records.partition is None else {"partition": records.partition}
    if producer.produce_batch(records.topic, messages, **partition) != len(messages):
        failed: Any = next(message["_error"] for message in messages if "_error" in message)
        raise KafkaException(failed)


def _produce_with_headers(producer: Producer, records: Records, start: int, length: int) -> None:
    keys: Iterator[bytes | None] | list[bytes | None] = (
        [None] * length if records.keys is None else records.keys.slice(start, length).to_pylist()
    )
    assert records.headers is not None
    all_headers = records.headers.slice(start, length).to_pylist()
    partition = {} if records.partition is None else {"partition": records.partition}
    for key, value, headers in zip(keys, records.values.slice(start, length).to_pylist(), all_headers, strict=True):
        pairs = [(header["key"], header["value"]) for header in headers or [] if header is not None]
        producer.produce(records.topic, value, key, headers=pairs, **partition)
