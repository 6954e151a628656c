"""Bytes from anyone: whatever they are, a decoder returns a message or raises ProtocolViolation, soon and cheaply."""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from moldau.core.errors import ProtocolViolation
from moldau.core.limits import ELEMENTS_MAX, TAGGED_FIELDS_MAX
from moldau.wire.codec import decode, decoder, encode
from moldau.wire.messages import (
    ApiVersionsRequest,
    DescribeTopicPartitionsRequest,
    FetchRequest,
    MetadataRequest,
    ProduceRequest,
)
from moldau.wire.schema import Message
from moldau.wire.varint import write_uvarint
from tests.wire.message_values import CASE_IDS, CASES, sample

MUTATIONS = 300
HUGE_UVARINT = b"\xff\xff\xff\xff\x0f"
HUGE_INT32 = b"\x7f\xff\xff\xff"


def read_or_refuse(read: Callable[[memoryview, int], Any], raw: bytes) -> bool:
    """Whether the bytes were read; anything but a message or a ProtocolViolation fails the test."""
    try:
        _, end = read(memoryview(raw), 0)
    except ProtocolViolation:
        return False
    assert end <= len(raw)
    return True


@pytest.mark.parametrize(("cls", "version"), CASES, ids=CASE_IDS)
def test_a_message_cut_short_is_refused_at_every_byte(cls: type[Message], version: int) -> None:
    raw = encode(sample(cls, version), version)
    read = decoder(cls, version)
    assert read_or_refuse(read, raw)
    for size in range(len(raw)):
        assert not read_or_refuse(read, raw[:size]), f"read {size} of {len(raw)} bytes"


@pytest.mark.parametrize(("cls", "version"), CASES, ids=CASE_IDS)
def test_changed_bytes_are_read_or_refused(cls: type[Message], version: int) -> None:
    raw = encode(sample(cls, version), version) + b"\0"
    read = decoder(cls, version)
    chance = random.Random(f"{cls.__name__} {version}")
    for _ in range(MUTATIONS):
        changed = bytearray(raw)
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(len(changed))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        read_or_refuse(read, bytes(changed))


@pytest.mark.parametrize(("cls", "version"), CASES, ids=CASE_IDS)
def test_a_huge_length_anywhere_is_read_or_refused(cls: type[Message], version: int) -> None:
    raw = encode(sample(cls, version), version)
    read = decoder(cls, version)
    for at in range(len(raw)):
        for huge in (HUGE_UVARINT, HUGE_INT32, b"\xff\xff\xff\xff", b"\x80\0\0\0"):
            read_or_refuse(read, raw[:at] + huge + raw[at + len(huge) :])


@pytest.mark.parametrize(
    ("cls", "version", "raw"),
    [
        (ProduceRequest, 11, b"\0\0\1\0\0\0\1" + HUGE_UVARINT + bytes(50)),
        (ProduceRequest, 7, b"\xff\xff\0\1\0\0\0\1" + HUGE_INT32 + bytes(50)),
        (MetadataRequest, 1, HUGE_INT32),
        (MetadataRequest, 9, HUGE_UVARINT + bytes(50)),
        (ApiVersionsRequest, 3, HUGE_UVARINT),
    ],
)
def test_a_huge_count_costs_no_memory(cls: type[Message], version: int, raw: bytes) -> None:
    decoder(cls, version)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolViolation):
            decode(cls, version, raw)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_the_elements_of_a_message_are_limited_even_when_all_are_there() -> None:
    topics = ELEMENTS_MAX + 1
    raw = b"\xff\xff\xff\xff" + bytes(8 + 4 + 1 + 4 + 4) + write_uvarint(topics + 1) + b"\1\1\0" * topics
    with pytest.raises(ProtocolViolation, match=r"FetchRequest\.topics"):
        decode(FetchRequest, 12, raw)


def test_elements_are_counted_over_all_arrays() -> None:
    partitions = ELEMENTS_MAX // 2
    topic = struct.pack(">hc", 1, b"t") + struct.pack(">i", partitions) + bytes(8 * partitions)
    with pytest.raises(ProtocolViolation, match=r"TopicProduceData\.partition_data"):
        decode(ProduceRequest, 3, b"\xff\xff" + bytes(6) + struct.pack(">i", 2) + topic * 2)


def test_unknown_tags_are_skipped() -> None:
    tags = write_uvarint(2) + write_uvarint(99) + b"\3abc" + write_uvarint(100) + b"\0"
    message, end = decode(ApiVersionsRequest, 3, b"\2a\2b" + tags)
    assert (message, end) == (ApiVersionsRequest(client_software_name="a", client_software_version="b"), 4 + len(tags))


def test_unknown_tags_are_skipped_among_known_ones() -> None:
    raw = encode(FetchRequest(cluster_id="c"), 12)
    assert raw.endswith(b"\1\0\2\2c")
    message, _ = decode(FetchRequest, 12, raw[:-5] + b"\2\0\2\2c\x63\1x")
    assert message.cluster_id == "c"


def test_a_tag_whose_size_is_not_its_value_is_refused() -> None:
    raw = encode(FetchRequest(cluster_id="c"), 12)
    with pytest.raises(ProtocolViolation, match="cluster_id"):
        decode(FetchRequest, 12, raw[:-5] + b"\1\0\3\2cx")


@pytest.mark.parametrize("cls", [ApiVersionsRequest, FetchRequest])
def test_tags_are_limited(cls: type[Message]) -> None:
    version = cls.FLEXIBLE_FROM
    raw = encode(sample(ApiVersionsRequest, 3), 3) if cls is ApiVersionsRequest else encode(FetchRequest(), 12)
    tags = write_uvarint(TAGGED_FIELDS_MAX + 1) + b"\x63\0" * (TAGGED_FIELDS_MAX + 1)
    with pytest.raises(ProtocolViolation, match="tags"):
        decode(cls, version, raw[:-1] + tags)


def test_what_is_not_utf_8_is_refused() -> None:
    with pytest.raises(ProtocolViolation, match="UTF-8"):
        decode(ApiVersionsRequest, 3, b"\2\xff\2b\0")


def test_a_string_that_must_not_be_null_is_refused() -> None:
    with pytest.raises(ProtocolViolation, match="client_software_name"):
        decode(ApiVersionsRequest, 3, b"\0\2b\0")
    with pytest.raises(ProtocolViolation, match=r"MetadataRequestTopic\.name"):
        decode(MetadataRequest, 1, b"\0\0\0\1\xff\xff")


def test_an_array_that_must_not_be_null_is_refused() -> None:
    with pytest.raises(ProtocolViolation, match=r"MetadataRequest\.topics"):
        decode(MetadataRequest, 0, b"\xff\xff\xff\xff")
    assert decode(MetadataRequest, 1, b"\xff\xff\xff\xff")[0].topics is None


def test_a_length_below_null_is_refused() -> None:
    with pytest.raises(ProtocolViolation, match="transactional_id"):
        decode(ProduceRequest, 3, b"\xff\xfe" + bytes(10))


def test_a_nested_object_may_be_null_where_it_may() -> None:
    message, _ = decode(DescribeTopicPartitionsRequest, 0, b"\1\0\0\0\7\xff\0")
    assert (message.cursor, message.response_partition_limit) == (None, 7)


def test_an_integer_of_too_many_bytes_is_refused() -> None:
    with pytest.raises(ProtocolViolation, match="5 bytes"):
        decode(MetadataRequest, 9, b"\x80" * 6 + bytes(20))
