"""Record batches: round trips, other implementations as judges, and batches that lie."""

from __future__ import annotations

import struct
import warnings
from contextlib import suppress
from importlib import import_module
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.wire.batch import (
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Codec,
    CorruptBatch,
    InvalidRecord,
    Record,
    batches,
    build_batch,
    read_header,
    records,
    stamp,
    verify_crc,
    write_crc,
)
from moldau.wire.records import spans
from moldau.wire.varint import write_varint

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas through a deprecated call
    KafkaPythonBatch = import_module("kafka.record.default_records").DefaultRecordBatch

NOW_MS = 1_700_000_000_000
CAP = 1 << 20

nullable_bytes = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(max_size=10).map(str.encode), st.none() | st.binary(max_size=20)), max_size=4).map(
    tuple
)
bodies = st.lists(
    st.tuples(st.integers(min_value=0, max_value=1 << 45), nullable_bytes, nullable_bytes, headers),
    min_size=1,
    max_size=20,
)


def made_of(bodies: list[Any], base: int = 0) -> list[Record]:
    return [Record(base + i, ts, key, value, each) for i, (ts, key, value, each) in enumerate(bodies)]


def plain(record: Record) -> tuple[Any, ...]:
    """Views compare with bytes, but not inside tuples of headers."""
    return (
        record.offset,
        record.timestamp,
        None if record.key is None else bytes(record.key),
        None if record.value is None else bytes(record.value),
        tuple((name, None if value is None else bytes(value)) for name, value in record.headers),
    )


@given(bodies, st.sampled_from(Codec), st.integers(min_value=0, max_value=1 << 60))
@settings(deadline=None)
def test_what_was_built_is_read_back(bodies: list[Any], codec: Codec, base: int) -> None:
    wanted = made_of(bodies, base)
    batch = memoryview(build_batch(wanted, codec=codec, base_offset=base))
    header = read_header(batch)
    assert header.length_bytes == len(batch)
    assert header.record_count == len(wanted)
    assert (header.base_offset, header.last_offset) == (base, base + len(wanted) - 1)
    assert header.max_timestamp == max(each.timestamp for each in wanted)
    assert header.codec == codec
    assert verify_crc(batch, 0, header)
    assert [plain(each) for each in records(batch, decompressed_bytes_max=CAP)] == [plain(each) for each in wanted]


@given(bodies, st.sampled_from(Codec))
@settings(deadline=None)
def test_other_clients_read_our_batches(bodies: list[Any], codec: Codec) -> None:
    wanted = made_of(bodies)
    batch = bytes(build_batch(wanted, codec=codec, producer_id=7, producer_epoch=2, base_sequence=5))
    for implementation in (AiokafkaBatch, KafkaPythonBatch):
        theirs: Any = implementation(bytearray(batch))
        assert theirs.validate_crc()
        assert (theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (7, 2, 5)
        got = [
            (r.offset, r.timestamp, r.key, r.value, tuple((name.encode(), value) for name, value in r.headers))
            for r in theirs
        ]
        assert got == [plain(each) for each in wanted]


@given(bodies, st.sampled_from(Codec))
@settings(deadline=None)
def test_we_read_other_clients_batches(bodies: list[Any], codec: Codec) -> None:
    builder: Any = AiokafkaBuilder(
        magic=2, compression_type=codec, is_transactional=0, producer_id=3, producer_epoch=1, base_sequence=9,
        batch_size=10_000_000,
    )  # fmt: skip
    for index, (timestamp, key, value, each) in enumerate(bodies):
        named = [(name.decode(), header_value) for name, header_value in each]
        builder.append(index, timestamp=timestamp, key=key, value=value, headers=named)
    batch = memoryview(bytes(builder.build()))
    header = read_header(batch)
    assert verify_crc(batch, 0, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (3, 1, 9)
    got = [plain(each) for each in records(batch, decompressed_bytes_max=CAP)]
    assert got == [plain(each) for each in made_of(bodies)]


def test_flags_and_sequences() -> None:
    batch = build_batch(
        [Record(0, 5), Record(1, 6)],
        attributes=TRANSACTIONAL | CONTROL | LOG_APPEND_TIME,
        producer_id=1,
        producer_epoch=0,
        base_sequence=0x7FFFFFFF,
        max_timestamp=99,
    )
    header = read_header(batch)
    assert header.is_transactional
    assert header.is_control
    assert header.is_log_append_time
    assert header.timestamp_type == 1
    assert header.last_sequence == 0  # sequences wrap
    assert [each.timestamp for each in records(memoryview(batch), decompressed_bytes_max=CAP)] == [99, 99]


def test_a_stamp_moves_a_batch_and_leaves_its_checksum_right() -> None:
    batch = memoryview(bytearray(3) + build_batch([Record(0, NOW_MS, b"k", b"v"), Record(1, NOW_MS, b"k", b"v")]))
    stamp(batch, 3, 1000, 42)
    header = read_header(batch, 3)
    assert (header.base_offset, header.leader_epoch, header.next_offset) == (1000, 42, 1002)
    assert verify_crc(batch, 3, header)


def test_batches_follow_each_other() -> None:
    one = build_batch([Record(0, NOW_MS, b"a")])
    two = build_batch([Record(1, NOW_MS, b"b"), Record(2, NOW_MS, b"c")], base_offset=1)
    found = [(at, header.base_offset) for at, header in batches(one + two)]
    assert found == [(0, 0), (len(one), 1)]


@pytest.mark.parametrize("cut", [1, 11, 12, 16, 17, 30, 60, 61, 65])
def test_a_cut_tail_ends_the_batches_only_where_that_is_allowed(cut: int) -> None:
    batch = build_batch([Record(0, NOW_MS, b"key", b"value")])
    buffer = batch + batch[:cut]
    assert [at for at, _ in batches(buffer, partial_tail=True)] == [0]
    with pytest.raises(CorruptBatch):
        list(batches(buffer))


@pytest.mark.parametrize("length", [-1, -(1 << 31), 0, 1, 48, 1 << 20, (1 << 31) - 1])
def test_a_lying_length_is_refused(length: int) -> None:
    batch = build_batch([Record(0, NOW_MS, b"k", b"v")])
    struct.pack_into(">i", batch, 8, length)
    with pytest.raises(CorruptBatch):
        list(batches(batch))


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_sets_are_named(magic: int) -> None:
    message = struct.pack(">qiibbii", 0, 14, 0, magic, 0, -1, -1)
    with pytest.raises(InvalidRecord, match=f"version {magic}"):
        list(batches(message))


@pytest.mark.parametrize("magic", [3, 127, 255])
def test_an_unknown_magic_is_corrupt(magic: int) -> None:
    batch = build_batch([Record(0, NOW_MS, b"k", b"v")])
    batch[16] = magic
    with pytest.raises(CorruptBatch, match="Invalid magic"):
        list(batches(batch))


def test_every_flipped_bit_that_the_checksum_covers_is_noticed() -> None:
    batch = memoryview(build_batch([Record(0, NOW_MS, b"k", b"v")]))
    for at in range(17, len(batch)):
        batch[at] ^= 0x10
        assert not verify_crc(batch, 0, read_header(batch))
        batch[at] ^= 0x10


def payload_of(*fields: int | bytes) -> bytes:
    """A record's payload by hand: varints and raw bytes, with the right size in front."""
    out = b"".join(each if isinstance(each, bytes) else write_varint(each) for each in fields)
    return write_varint(len(out)) + out


LIES = {
    "key longer than the record": payload_of(b"\0", 0, 0, 100, b"k", 1, b"v", 0),
    "key of 2 GB": payload_of(b"\0", 0, 0, (1 << 31) - 1, b"k", 1, b"v", 0),
    "value longer than the record": payload_of(b"\0", 0, 0, 1, b"k", 50, b"v", 0),
    "more headers than bytes": payload_of(b"\0", 0, 0, 1, b"k", 1, b"v", 1_000_000),
    "negative number of headers": payload_of(b"\0", 0, 0, 1, b"k", 1, b"v", -1),
    "negative header name": payload_of(b"\0", 0, 0, 1, b"k", 1, b"v", 1, -1, 0),
    "bytes after the headers": payload_of(b"\0", 0, 0, 1, b"k", 1, b"v", 0, b"more"),
    "varint without end": payload_of(b"\0", b"\xff" * 12, b"\0\0\0\0"),
    "negative size": b"\x01" + b"\0" * 10,
    "empty record": b"\0",
    "nothing": b"",
    "size beyond the end": b"\x7e\0\0\0\1\1\0",
    "unfinished size": b"\xff",
}


@pytest.mark.parametrize("name", LIES)
def test_a_lying_record_is_refused(name: str) -> None:
    with pytest.raises(InvalidRecord):
        list(spans(LIES[name], 1))


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 1 << 30, (1 << 31) - 1])
def test_a_lying_count_is_refused(count: int) -> None:
    batch = build_batch([Record(0, NOW_MS, b"k", b"v"), Record(1, NOW_MS, b"k", b"v")])
    struct.pack_into(">i", batch, HEADER_BYTES - 4, count)
    write_crc(batch, 0, len(batch))
    with pytest.raises(InvalidRecord):
        list(records(memoryview(batch), decompressed_bytes_max=CAP))


def test_a_million_headers_cost_no_memory_until_they_are_asked_for() -> None:
    import tracemalloc

    body = b"\0\0\0\1\1" + bytes([0x80, 0x89, 0x7A]) + b"\0\1" * 1_000_000  # 1,000,000 headers, empty name, null value
    sized = write_varint(len(body)) + body
    tracemalloc.start()
    (span,) = spans(sized, 1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert span.header_count == 1_000_000
    assert peak < 1 << 20


@given(st.binary(max_size=200), st.integers(min_value=0, max_value=20))
def test_only_declared_errors_come_out_of_random_records(payload: bytes, count: int) -> None:
    with suppress(InvalidRecord):
        assert sum(1 for _ in spans(payload, count)) == count


@given(bodies, st.sampled_from(Codec), st.data())
@settings(deadline=None)
def test_only_declared_errors_come_out_of_damaged_batches(bodies: list[Any], codec: Codec, data: st.DataObject) -> None:
    batch = build_batch(made_of(bodies), codec=codec)
    for _ in range(data.draw(st.integers(min_value=1, max_value=5))):
        batch[data.draw(st.integers(min_value=0, max_value=len(batch) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CorruptBatch, InvalidRecord):
        for at, header in batches(batch):
            list(records(memoryview(batch)[at : at + header.length_bytes], decompressed_bytes_max=CAP))


@given(st.binary(max_size=150))
def test_only_declared_errors_come_out_of_random_bytes(noise: bytes) -> None:
    with suppress(CorruptBatch, InvalidRecord):
        list(batches(noise))
