"""Vectorised parsing, judged by the records that the wire package writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.client.fetched import Aborted
from moldau.core.ids import TopicPartition
from moldau.spark.offsets.bounds import OffsetRange
from moldau.spark.reading.fetching import PORTION_BYTES, visible_batches
from moldau.spark.reading.record_columns import CorruptRecords, RecordsAt, read_varints, to_batch
from moldau.wire.batch import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, Codec, Record, build_batch, read_header
from moldau.wire.messages.fetch import AbortedTransaction, PartitionData
from moldau.wire.varint import write_varint

PLACE = TopicPartition("orders", 3)
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")

maybe_bytes = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(max_size=5).map(str.encode), maybe_bytes), max_size=3).map(tuple)
contents = st.tuples(st.integers(0, 2**41), maybe_bytes, maybe_bytes, headers)
Content = tuple[int, bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]


def made(content: list[Content], base: int = 0) -> list[Record]:
    return [
        Record(base + index, timestamp, key, value, pairs)
        for index, (timestamp, key, value, pairs) in enumerate(content)
    ]


def read(data: PartitionData, *, start: int, end: int, portion_bytes: int = PORTION_BYTES) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for portion in visible_batches(data, start).portions(portion_bytes=portion_bytes):
        if portion.visible:
            batch = to_batch(portion.buffer, portion.visible, OffsetRange(PLACE, start, end), COLUMNS)
            rows += [] if batch is None else batch.to_pylist()
    return rows


def expected(record: Record) -> dict[str, Any]:
    pairs = [{"key": name.decode(), "value": value} for name, value in record.headers]
    return {
        "key": record.key,
        "value": record.value,
        "topic": "orders",
        "partition": 3,
        "offset": record.offset,
        "timestampType": 0,
        "headers": pairs or None,
    }


@settings(deadline=None)
@given(
    st.lists(st.lists(contents, min_size=1, max_size=6), min_size=1, max_size=4),
    st.lists(st.sampled_from(list(Codec)), min_size=4, max_size=4),
    st.integers(0, 8),
    st.integers(1, 20),
    st.sampled_from([1, 100, PORTION_BYTES]),
)
def test_columns_are_the_records(
    batches: list[list[Content]], codecs: list[Codec], start: int, size: int, portion_bytes: int
) -> None:
    everything: list[Record] = []
    raw = bytearray()
    for content, codec in zip(batches, codecs, strict=False):
        records = made(content, base=len(everything))
        everything += records
        raw += build_batch(records, codec=codec)
    start = min(start, len(everything) - 1)
    rows = read(PartitionData(records=memoryview(raw)), start=start, end=start + size, portion_bytes=portion_bytes)
    wanted = everything[start : start + size]
    assert [row.pop("timestamp").timestamp() * 1000 for row in rows] == pytest.approx(
        [record.timestamp for record in wanted]
    )
    assert rows == [expected(record) for record in wanted]


@settings(deadline=None)
@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=50))
def test_varints(numbers: list[int]) -> None:
    encoded = [write_varint(number) for number in numbers]
    at = np.cumsum([0, *map(len, encoded)])
    values, after = read_varints(np.frombuffer(b"".join(encoded) + b"\0", np.uint8), at[:-1].astype(np.int64))
    assert values.tolist() == numbers
    assert after.tolist() == at[1:].tolist()


def test_the_brokers_time_is_in_the_header() -> None:
    raw = build_batch(made([(5, None, b"a", ()), (6, None, b"b", ())]), attributes=LOG_APPEND_TIME, max_timestamp=77)
    rows = read(PartitionData(records=memoryview(raw)), start=0, end=9)
    assert [(row["timestamp"].timestamp() * 1000, row["timestampType"]) for row in rows] == [(77, 1), (77, 1)]


def test_aborted_and_control_records_are_passed() -> None:
    def batch(offset: int, producer: int, value: bytes, flags: int = TRANSACTIONAL) -> bytearray:
        return build_batch([Record(offset, 1, b"k", value)], producer_id=producer, attributes=flags)

    raw = b"".join(
        [
            batch(0, 1, b"aborted"),
            batch(1, 2, b"kept"),
            batch(2, 1, b"marker", TRANSACTIONAL | CONTROL),
            batch(3, 1, b"kept too"),
            batch(4, 1, b"marker", TRANSACTIONAL | CONTROL),
        ]
    )
    aborted = [AbortedTransaction(producer_id=1, first_offset=0)]
    data = PartitionData(records=memoryview(raw), aborted_transactions=aborted)
    assert [row["value"] for row in read(data, start=0, end=5)] == [b"kept", b"kept too"]
    assert visible_batches(data, 4).next_offset == 5
    assert read(data, start=4, end=5) == []


def test_an_answer_that_unpacks_to_much_comes_in_portions() -> None:
    """All of it at once would be beyond what Arrow can count, and the offsets of values would wrap around."""
    batches = [build_batch([Record(offset, 1, None, bytes(100_000))], codec=Codec.ZSTD) for offset in range(5)]
    fetched = visible_batches(PartitionData(records=memoryview(b"".join(batches))), 0)
    portions = list(fetched.portions(portion_bytes=150_000))
    assert [portion.next_offset for portion in portions] == [2, 4, 5]
    assert [len(portion.visible) for portion in portions] == [2, 2, 1]
    assert max(len(portion.buffer) for portion in portions) < 300_000


def test_a_damaged_batch_is_noticed() -> None:
    raw = build_batch([Record(0, 1, b"k", b"value")])
    raw[-2] ^= 1
    with pytest.raises(OSError, match="checksum"):
        visible_batches(PartitionData(records=memoryview(raw)), 0)


@settings(deadline=None)
@given(st.binary(max_size=60), st.integers(1, 5))
def test_bytes_that_are_no_records_harm_nothing(body: bytes, count: int) -> None:
    at = RecordsAt(0, len(body), count, base_offset=0, base_timestamp_ms=0, append_timestamp_ms=None)
    try:
        to_batch(body, [at], OffsetRange(PLACE, 0, 100), COLUMNS)
    except CorruptRecords:
        """Noticed, which is all that is asked for."""


def test_an_aborted_transaction_ends_with_its_marker() -> None:
    aborted = Aborted([AbortedTransaction(producer_id=1, first_offset=0)])
    data = build_batch([Record(0, 1, None, b"v")], producer_id=1, attributes=TRANSACTIONAL)
    marker = build_batch([Record(1, 1, None, b"v")], producer_id=1, attributes=TRANSACTIONAL | CONTROL)
    assert aborted.hides(read_header(data))
    assert aborted.hides(read_header(marker))
    assert not aborted.hides(read_header(data))
