"""What a leader refuses, rewrites and leaves alone. The codes in REFUSED are Apache Kafka 4.3.1's own answers."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.core.config.topic import TopicConfig
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import TopicPartition
from moldau.log.appending.validation import Validated, Validator, check_request
from moldau.log.errors import LogError
from moldau.wire.batch import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    MAGIC,
    BatchHeader,
    Codec,
    Record,
    build_batch,
    encode_header,
    read_header,
    records,
    verify_crc,
    write_crc,
)
from moldau.wire.compression import compress
from moldau.wire.records import Buffer, encode_records

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
CAP = 1 << 20
DEFAULTS = TopicConfig.defaults()
PARTITION = TopicPartition("orders", 0)


def record(offset: int, timestamp: int = NOW_MS, key: bytes | None = b"key", value: bytes = b"value") -> Record:
    return Record(offset, timestamp, key, value)


def batch(count: int = 2, **options: Any) -> bytearray:
    return build_batch([record(i) for i in range(count)], **options)


def edited(source: bytearray, at: int, layout: str, value: int, *, checksum: bool = True) -> bytearray:
    changed = bytearray(source)
    struct.pack_into(layout, changed, at, value)
    if checksum:
        write_crc(changed, 0, len(changed))
    return changed


def counting(source: bytearray, count: int) -> bytearray:
    """A batch whose header lies about its records, and agrees with itself."""
    return edited(edited(source, 57, ">i", count), 23, ">i", count - 1)


def raw(payload: Buffer, count: int = 1, codec: Codec = Codec.NONE) -> bytearray:
    header = BatchHeader(0, 0, -1, MAGIC, 0, codec, count - 1, NOW_MS, NOW_MS, -1, -1, -1, count)
    return encode_header(header, payload)


def validate(produced: bytearray, *, version: int = 8, now_ms: int = NOW_MS, **overrides: str) -> Validated:
    """As the broker does it: the request's own rules, then the topic's."""
    config = DEFAULTS.override({name.replace("_", "."): value for name, value in overrides.items()})
    view = memoryview(bytearray(produced))
    check_request(view, version)
    return Validator(config, PARTITION).validate(view, now_ms)


def refusal(produced: bytearray, **options: Any) -> ApiError:
    with pytest.raises(ApiError) as refused:
        validate(produced, **options)
    return refused.value


GOOD = batch()
LEGACY = bytearray(struct.pack(">qiIbbii", 0, 14, 0, 0, 0, -1, -1))
CORRUPT, INVALID, TOO_LARGE = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE

REFUSED: dict[str, tuple[bytearray, ErrorCode]] = {
    "nothing": (bytearray(), INVALID),
    "five bytes": (bytearray(5), INVALID),
    "cut batch": (GOOD[:-1], INVALID),
    "zeros after the batch": (GOOD + bytes(20), CORRUPT),
    "two batches": (GOOD + GOOD, INVALID),
    "length -1": (edited(GOOD, 8, ">i", -1, checksum=False), CORRUPT),
    "length 0": (edited(GOOD, 8, ">i", 0, checksum=False), CORRUPT),
    "length 20": (edited(GOOD, 8, ">i", 20, checksum=False), CORRUPT),
    "magic 0": (LEGACY, INVALID),
    "magic 1": (edited(GOOD, 16, ">b", 1, checksum=False), INVALID),
    "magic 3": (edited(GOOD, 16, ">b", 3, checksum=False), CORRUPT),
    "magic -1": (edited(GOOD, 16, ">b", -1, checksum=False), CORRUPT),
    "wrong checksum": (edited(GOOD, 17, ">I", 123, checksum=False), CORRUPT),
    "base offset 5": (edited(GOOD, 0, ">q", 5), INVALID),
    "count 0": (edited(GOOD, 57, ">i", 0), INVALID),
    "count -1": (edited(GOOD, 57, ">i", -1), INVALID),
    "count 3 of 2 offsets": (edited(GOOD, 57, ">i", 3), INVALID),
    "last offset -1": (edited(GOOD, 23, ">i", -1), INVALID),
    "last offset 7": (edited(GOOD, 23, ">i", 7), INVALID),
    "one record fewer in the header": (counting(GOOD, 1), INVALID),
    "one record more in the header": (counting(GOOD, 3), INVALID),
    "a million records in the header": (counting(GOOD, 1_000_000), INVALID),
    "control batch": (batch(1, attributes=CONTROL), INVALID),
    "producer without a sequence": (batch(1, producer_id=1, producer_epoch=0), INVALID),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_for_its_header(name: str) -> None:
    produced, code = REFUSED[name]
    assert refusal(produced).code is code


@pytest.mark.parametrize(
    "produced", [raw(b"\xff" * 30), raw(b"\x01" * 30), raw(b"\x7f" * 30, 4), counting(GOOD, (1 << 31) - 1)]
)
def test_refused_for_its_sizes(produced: bytearray) -> None:
    """Apache Kafka has an internal error to report here; the records are as invalid to us as any other."""
    assert refusal(produced).code is INVALID


@pytest.mark.parametrize(
    "produced",
    [
        GOOD,
        batch(1, base_sequence=5),
        batch(1, producer_id=1, producer_epoch=-1, base_sequence=0),
        batch(1, attributes=DELETE_HORIZON),
        batch(1, attributes=0x80),
        batch(1, attributes=0x4000),
        build_batch([record(0, 5)]),
        build_batch([record(0, -1)]),
        raw(encode_records([record(3), record(9)], base_offset=0, base_timestamp=NOW_MS), 2),
        *(batch(100, codec=codec) for codec in Codec),
    ],
    ids=lambda produced: f"{len(produced)} bytes",
)
def test_taken_as_it_is(produced: bytearray) -> None:
    taken = validate(produced)
    assert taken.records == produced
    assert taken.header == read_header(produced)
    assert taken.log_append_time_ms == -1


def test_a_cut_tail_is_left_out_as_kafka_does() -> None:
    assert validate(GOOD + b"12345").records == GOOD


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec(codec: int) -> None:
    refused = refusal(edited(GOOD, 21, ">h", codec))
    assert (refused.code, refused.message) == (INVALID, f"Unknown compression type id: {codec}")


def test_size() -> None:
    large = build_batch([record(0, value=b"x" * 5000)])
    assert refusal(large, max_message_bytes="1000").code is TOO_LARGE
    assert refusal(edited(large, 17, ">I", 1, checksum=False), max_message_bytes="1000").code is TOO_LARGE
    assert validate(large, max_message_bytes=str(len(large))).records == large


def test_zstd_is_for_clients_that_can_read_it() -> None:
    produced = batch(codec=Codec.ZSTD)
    for version in (3, 6):
        assert refusal(produced, version=version).code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert validate(produced, version=7).records == produced
    assert validate(batch(codec=Codec.LZ4), version=3)


def test_no_records_at_all() -> None:
    with pytest.raises(ApiError, match="at least one record batch") as refused:
        check_request(None, 9)
    assert refused.value.code is INVALID


def test_records_from_the_future_are_named() -> None:
    bounds = f"[{NOW_MS - ((1 << 63) - 1)}, {NOW_MS + HOUR_MS}]"
    late = [record(0), record(1, NOW_MS + 2 * HOUR_MS), record(2, NOW_MS + HOUR_MS), record(3, NOW_MS + HOUR_MS + 1)]
    refused = refusal(build_batch(late))
    assert isinstance(refused, LogError)
    assert refused.code is ErrorCode.INVALID_TIMESTAMP
    assert refused.message == "One or more records have been rejected due to invalid timestamp"
    assert refused.record_errors == tuple(
        (
            i,
            f"Timestamp {late[i].timestamp} of message with offset {i} is out of range. The timestamp should be within "
            f"{bounds}",
        )
        for i in (1, 3)
    )


@pytest.mark.parametrize("codec", Codec)
def test_the_lower_bound_holds_for_every_record(codec: Codec) -> None:
    stale = [record(0), record(1, NOW_MS - 60_001), record(2)]
    refused = refusal(build_batch(stale, codec=codec), message_timestamp_before_max_ms="60000")
    assert isinstance(refused, LogError)
    assert refused.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in refused.record_errors] == [1]
    fine = build_batch([record(0), record(1, NOW_MS - 60_000)], codec=codec)
    assert validate(fine, message_timestamp_before_max_ms="60000").records == fine


def test_a_largest_timestamp_that_cannot_be_true_is_corrected() -> None:
    for claimed in (NOW_MS + 10**10, NOW_MS - 1, -1):
        taken = validate(batch(max_timestamp=claimed))
        assert taken.records == GOOD
        assert taken.header.max_timestamp == NOW_MS


def test_a_timestamp_beyond_64_bits() -> None:
    produced = raw(
        encode_records([record(0), record(1, NOW_MS + (1 << 63) - 1)], base_offset=0, base_timestamp=NOW_MS), 2
    )
    limits = {"message_timestamp_after_max_ms": str((1 << 63) - 1), "message_timestamp_before_max_ms": "1"}
    assert refusal(produced, **limits).code is INVALID


def test_log_append_time_replaces_what_the_producer_said() -> None:
    for produced in (GOOD, build_batch([record(0, -1)]), build_batch([record(0, NOW_MS + 10**9)])):
        taken = validate(produced, message_timestamp_type="LogAppendTime", now_ms=NOW_MS + 7)
        assert taken.log_append_time_ms == NOW_MS + 7
        assert taken.header.is_log_append_time
        assert taken.header.max_timestamp == NOW_MS + 7
        assert taken.header.base_timestamp == read_header(produced).base_timestamp
        assert verify_crc(taken.records, 0, taken.header)
        assert {r.timestamp for r in records(taken.records, decompressed_bytes_max=CAP)} == {NOW_MS + 7}


def test_a_producer_does_not_set_log_append_time() -> None:
    claimed = batch(1, attributes=LOG_APPEND_TIME)
    assert refusal(claimed, message_timestamp_type="LogAppendTime").code is ErrorCode.INVALID_TIMESTAMP
    assert validate(claimed).records == batch(1)  # on a CreateTime topic Kafka clears the flag and goes on
    untimed = build_batch([record(0, -1, b"k", b"v")], attributes=LOG_APPEND_TIME)
    refused = refusal(untimed)
    assert isinstance(refused, LogError)
    assert refused.record_errors == (
        (
            0,
            "Invalid timestamp type in message DefaultRecord(offset=0, timestamp=-1, key=1 bytes, value=1 bytes). "
            "Producer should not set timestamp type to LogAppendTime.",
        ),
    )


@pytest.mark.parametrize("codec", Codec)
def test_a_compacted_topic_needs_keys(codec: Codec) -> None:
    keyless = build_batch([record(i, key=None if i in (1, 3, 4, 5) else b"k") for i in range(6)], codec=codec)
    refused = refusal(keyless, cleanup_policy="compact")
    fault = "Compacted topic cannot accept message without key in topic partition orders-0"
    assert isinstance(refused, LogError)
    assert refused.code is INVALID
    assert refused.record_errors == tuple((i, fault) for i in (1, 3, 4, 5))
    shown = ", ".join(f"RecordError(batchIndex={i}, message='{fault}')" for i in (1, 3, 4))
    assert refused.message == (
        "One or more records have been rejected due to 4 record errors in total, and only showing the first three "
        f"errors at most: [{shown}]"
    )
    assert validate(keyless).records == keyless
    assert validate(batch(codec=codec), cleanup_policy="compact,delete").records == batch(codec=codec)


def test_one_bad_timestamp_names_the_whole_refusal() -> None:
    both = build_batch([record(0, key=None), record(1, NOW_MS + 10**8)])
    refused = refusal(both, cleanup_policy="compact")
    assert isinstance(refused, LogError)
    assert refused.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in refused.record_errors] == [0, 1]


LYING_COMPRESSED: dict[str, Callable[[Codec], bytearray]] = {
    "garbage": lambda codec: raw(b"garbage" * 5, 1, codec),
    "fewer records than declared": lambda codec: counting(batch(codec=codec), 3),
    "more records than declared": lambda codec: counting(batch(codec=codec), 1),
    "offsets with gaps": lambda codec: raw(
        bytes(compress(codec, encode_records([record(3), record(9)], base_offset=0, base_timestamp=NOW_MS))), 2, codec
    ),
}


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
@pytest.mark.parametrize("name", LYING_COMPRESSED)
def test_lies_in_a_compressed_batch_come_out_when_it_is_opened(name: str, codec: Codec) -> None:
    assert refusal(LYING_COMPRESSED[name](codec), cleanup_policy="compact").code is INVALID


def test_a_bomb_is_refused_in_bounded_memory() -> None:
    bomb = build_batch([record(0, value=bytes(200_000_000))], codec=Codec.ZSTD)
    tracemalloc.start()
    refused = refusal(bomb, cleanup_policy="compact")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert refused.code is INVALID
    assert peak < 64 << 20


@pytest.mark.parametrize("source", Codec)
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_the_topics_codec(source: Codec, target: str) -> None:
    wanted = Codec.NONE if target == "uncompressed" else Codec[target.upper()]
    produced = batch(50, codec=source, producer_id=9, producer_epoch=1, base_sequence=4)
    taken = validate(produced, compression_type=target)
    if source == wanted:
        assert taken.records == produced
    assert taken.header.codec == wanted
    assert verify_crc(taken.records, 0, taken.header)
    assert (taken.header.producer_id, taken.header.producer_epoch, taken.header.base_sequence) == (9, 1, 4)
    assert taken.header.length_bytes == len(taken.records)
    got = [(r.offset, r.timestamp, r.key, r.value) for r in records(taken.records, decompressed_bytes_max=CAP)]
    assert got == [(i, NOW_MS, b"key", b"value") for i in range(50)]


def test_recompression_gives_gapless_offsets_and_the_append_time() -> None:
    gaps = raw(encode_records([record(3), record(9)], base_offset=0, base_timestamp=NOW_MS), 2)
    taken = validate(gaps, compression_type="zstd", message_timestamp_type="LogAppendTime", now_ms=NOW_MS + 1)
    assert taken.log_append_time_ms == NOW_MS + 1
    got = [(r.offset, r.timestamp) for r in records(taken.records, decompressed_bytes_max=CAP)]
    assert got == [(0, NOW_MS + 1), (1, NOW_MS + 1)]


def test_a_batch_that_recompression_makes_too_large() -> None:
    zeros = build_batch([record(0, value=bytes(5000))], codec=Codec.ZSTD)
    assert refusal(zeros, compression_type="uncompressed", max_message_bytes="2000").code is TOO_LARGE


def test_coordinators_may_write_markers() -> None:
    marker = memoryview(batch(1, attributes=CONTROL, producer_id=4, producer_epoch=0))
    config = DEFAULTS.override({"compression.type": "gzip"})
    taken = Validator(config, PARTITION).accept_own(marker, NOW_MS)
    assert taken.records == marker  # Kafka does not compress them either


@pytest.mark.parametrize(
    "overrides",
    [{}, {"cleanup.policy": "compact"}, {"compression.type": "lz4"}, {"message.timestamp.type": "LogAppendTime"}],
    ids=str,
)
def test_an_own_batch_is_taken_as_a_clients_would_be(overrides: dict[str, str]) -> None:
    validator = Validator(DEFAULTS.override(overrides), PARTITION)
    own = validator.accept_own(memoryview(batch(3)), NOW_MS)
    validated = validator.validate(memoryview(batch(3)), NOW_MS)
    assert own == validated


def test_an_own_batch_must_have_room_too() -> None:
    config = DEFAULTS.override({"max.message.bytes": "100"})
    with pytest.raises(LogError) as refused:
        Validator(config, PARTITION).accept_own(memoryview(batch(5)), NOW_MS)
    assert refused.value.code is TOO_LARGE


@given(st.binary(max_size=120), st.sampled_from(["compact", "delete"]))
@settings(deadline=None)
def test_only_declared_errors_come_out_of_noise(noise: bytes, policy: str) -> None:
    assert refusal(bytearray(noise), cleanup_policy=policy).code in (CORRUPT, INVALID)


@given(st.data(), st.sampled_from(Codec))
@settings(deadline=None)
def test_only_declared_errors_come_out_of_damage_with_a_right_checksum(data: st.DataObject, codec: Codec) -> None:
    damaged = batch(5, codec=codec)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(17, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    write_crc(damaged, 0, len(damaged))
    try:
        taken = validate(damaged, cleanup_policy="compact", message_timestamp_before_max_ms="1000")
    except ApiError:
        return
    assert verify_crc(taken.records, 0, taken.header)
