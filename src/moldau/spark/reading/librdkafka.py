"""A range of offsets as Arrow batches of raw columns, through librdkafka, which reaches every kind of listener."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as ClientPartition

from moldau.core.ids import TopicPartition
from moldau.spark.clients.cluster import Cluster
from moldau.spark.clients.librdkafka import UNPACKED_BYTES_MAX, NoAnswer, range_consumer
from moldau.spark.columns import HEADERS, RAW_SCHEMA, raw_schema_of
from moldau.spark.offsets.bounds import OffsetRange
from moldau.spark.reading.data_loss import Loss, raise_or_warn
from moldau.spark.reading.range_settings import RangeReading

RECORDS_PER_BATCH = 10_000
PORTION_BYTES = 1 << 26
UNPACKED_LIMIT = "receive.message.max.bytes"
WAIT_S = 0.5  # a look at the deadline in between; what is there comes back at once

OUT_OF_RANGE = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)


def read_by_library(wanted: OffsetRange, reading: RangeReading) -> Iterator[pa.RecordBatch]:
    """Every record of the range that readers may see, in order; an end among control records is an end too."""
    consumer = range_consumer(reading.client, reading.group)
    consumer.assign([ClientPartition(wanted.place.topic, wanted.place.partition, wanted.start)])
    try:
        yield from _batches(consumer, wanted, reading)
    finally:
        consumer.unassign()


def _batches(consumer: Consumer, wanted: OffsetRange, reading: RangeReading) -> Iterator[pa.RecordBatch]:
    position = wanted.start
    deadline_s = time.monotonic() + reading.poll_timeout_ms / 1000
    while position < wanted.end:
        messages = consumer.consume(min(RECORDS_PER_BATCH, wanted.end - position), WAIT_S)
        if not messages:
            if time.monotonic() > deadline_s:
                raise NoAnswer(f"{_missing(wanted, position)}: nothing came in {reading.poll_timeout_ms} ms")
            continue
        deadline_s = time.monotonic() + reading.poll_timeout_ms / 1000
        # An event may stand anywhere among records: a replica tells its end before it has all that the leader has.
        records = [message for message in messages if message.error() is None]
        if len(records) < len(messages):
            position = max(position, _position_after(messages, consumer, wanted, reading))
        if records and records[-1].offset() >= wanted.end:
            position = wanted.end
            records = [message for message in records if message.offset() < wanted.end]
        elif records:
            position = max(position, records[-1].offset() + 1)
        if records:
            for some in portions(records, counts_headers=HEADERS in reading.columns):
                yield to_batch(some, wanted.place, reading.columns)


def portions(
    messages: Sequence[Any], *, counts_headers: bool, portion_bytes: int = PORTION_BYTES
) -> Iterator[Sequence[Any]]:
    """Messages in pieces of about `portion_bytes`: ten thousand may be many GB, and Arrow counts bytes in 31 bits."""
    first = size_bytes = 0
    for at, message in enumerate(messages):
        size_bytes += len(message) + len(message.key() or b"")
        if counts_headers:
            size_bytes += sum(len(name) + len(value or b"") for name, value in message.headers() or ())
        if size_bytes >= portion_bytes:
            yield messages[first : at + 1]
            first, size_bytes = at + 1, 0
    if first < len(messages):
        yield messages[first:]


def _position_after(messages: Sequence[Any], consumer: Consumer, wanted: OffsetRange, reading: RangeReading) -> int:
    """Where the reading stands by what came instead of records: the partition's end, or offsets that are gone."""
    position = wanted.start
    for message in messages:
        error = message.error()
        if error is None:
            continue
        if error.code() == KafkaError._PARTITION_EOF:
            # Control records and aborted ones are passed without a message: the end event alone tells how far.
            position = max(position, message.offset())
        elif error.code() in OUT_OF_RANGE:
            position = max(position, _skip_lost(message, consumer, wanted, reading))
        elif not error.retriable():
            raise NoAnswer(f"{_missing(wanted, position)}: {_why(error, reading)}")
    return position


def _skip_lost(message: Any, consumer: Consumer, wanted: OffsetRange, reading: RangeReading) -> int:
    earliest = Cluster(reading.client).earliest([wanted.place])[wanted.place]
    lost_from = min(max(wanted.start, message.offset()), wanted.end)
    resume_at = min(max(earliest, lost_from), wanted.end) if earliest > lost_from else wanted.end
    raise_or_warn(
        [Loss(wanted.place, lost_from, resume_at, "deleted while the query was about to read them")],
        fail=reading.fails_on_data_loss,
    )
    if resume_at < wanted.end:
        consumer.assign([ClientPartition(wanted.place.topic, wanted.place.partition, resume_at)])
    return resume_at


def _why(error: KafkaError, reading: RangeReading) -> str:
    if error.code() != KafkaError._BAD_COMPRESSION:
        return str(error.str())
    limit = dict(reading.client).get(UNPACKED_LIMIT, str(UNPACKED_BYTES_MAX))
    return (
        f"a batch does not unpack: it is damaged, or larger than {limit} bytes once unpacked, which is "
        f"kafka.{UNPACKED_LIMIT} ({error.str()})"
    )


def _missing(wanted: OffsetRange, position: int) -> str:
    return f"cannot read offsets {position} to {wanted.end - 1} of {wanted.place}"


def to_batch(messages: Sequence[Any], place: TopicPartition, columns: Collection[str]) -> pa.RecordBatch:
    count = len(messages)
    arrays = []
    stamps = [message.timestamp() for message in messages] if {"timestamp", "timestampType"} & set(columns) else []
    for name in columns:
        if name == "key":
            array = pa.array([message.key() for message in messages], pa.binary())
        elif name == "value":
            array = pa.array([message.value() for message in messages], pa.binary())
        elif name == "offset":
            array = pa.array([message.offset() for message in messages], pa.int64())
        elif name == "timestamp":
            array = pa.array([stamp[1] * 1000 for stamp in stamps], pa.int64()).cast(RAW_SCHEMA.field(name).type)
        elif name == "timestampType":
            # The library counts "unknown, create, append" from 0, Java from -1.
            array = pa.array([stamp[0] - 1 for stamp in stamps], pa.int32())
        elif name == HEADERS:
            array = pa.array([_headers(message) for message in messages], RAW_SCHEMA.field(name).type)
        else:
            array = constant(name, place, count)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=raw_schema_of(columns))


def constant(name: str, place: TopicPartition, count: int) -> pa.Array:
    """The columns that all records of a partition share."""
    value = place.topic if name == "topic" else place.partition
    return pa.repeat(pa.scalar(value, RAW_SCHEMA.field(name).type), count)


def _headers(message: Any) -> list[dict[str, Any]] | None:
    headers = message.headers()
    return [{"key": key, "value": value} for key, value in headers] if headers else None
