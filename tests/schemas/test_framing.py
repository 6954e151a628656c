"""Framing, judged by confluent-kafka's own reader and writer of schema ids."""

from __future__ import annotations

import io
from uuid import UUID

import pytest
from confluent_kafka.schema_registry.serde import SchemaId
from hypothesis import given
from hypothesis import strategies as st

from moldau.schemas import framing
from moldau.schemas.framing import Frame, NotFramed, read_frame, write_id
from moldau.schemas.model import InvalidValue

GUID = UUID("8f2e5f6a-93f0-4b5e-9d0f-0d6a5a1f4c11")
INDEXES = [(0,), (1,), (0, 0), (3, 1, 2), (63, 64, 127, 128), (2**31 - 1,)]


@pytest.mark.parametrize("message", INDEXES)
def test_confluents_serializer_writes_the_same_id(message: tuple[int, ...]) -> None:
    theirs = SchemaId("PROTOBUF", 7, str(GUID), list(message))
    assert write_id(7, message) == theirs.id_to_bytes()
    assert write_id(GUID, message) == theirs.guid_to_bytes()


@pytest.mark.parametrize("schema", [0, 7, 2**31 - 1, GUID])
@pytest.mark.parametrize("message", INDEXES)
def test_confluents_deserializer_reads_the_same_id(schema: int | UUID, message: tuple[int, ...]) -> None:
    theirs = SchemaId("PROTOBUF")
    rest = theirs.from_bytes(io.BytesIO(write_id(schema, message) + b"payload")).read()
    assert (theirs.guid or theirs.id, tuple(theirs.message_indexes or ()), rest) == (schema, message, b"payload")


@pytest.mark.parametrize("schema", [0, 7, 2**31 - 1, GUID])
def test_what_is_written_is_read(schema: int | UUID) -> None:
    plain = read_frame(write_id(schema) + b"payload", is_key=False)
    assert (plain.schema, plain.content(indexed=False)) == (schema, ((), b"payload"))
    indexed = read_frame(write_id(schema, (1, 2)) + b"payload", is_key=False)
    assert (indexed.schema, indexed.content(indexed=True)) == (schema, ((1, 2), b"payload"))


def test_the_first_message_takes_one_byte_and_is_read_in_its_long_form_too() -> None:
    assert write_id(1, (0,)) == bytes.fromhex("00 00000001 00")
    assert read_frame(bytes.fromhex("00 00000001 02 00"), is_key=True).content(indexed=True) == ((0,), b"")


def test_a_header_comes_before_a_prefix_and_leaves_the_payload_alone() -> None:
    headers = [("trace", b"\x01"), ("__value_schema_id", write_id(GUID, (4,))), ("__key_schema_id", write_id(9))]
    payload = write_id(5) + b"payload"
    value, key = (read_frame(payload, is_key=is_key, headers=headers) for is_key in (False, True))
    assert (value.schema, value.content(indexed=True)) == (GUID, ((4,), payload))
    assert (key.schema, key.content(indexed=False)) == (9, ((), payload))


def test_the_last_header_of_a_name_counts_and_a_null_one_does_not() -> None:
    twice = [("__key_schema_id", write_id(1)), ("__key_schema_id", write_id(2))]
    assert read_frame(b"", is_key=True, headers=twice) == Frame(2, b"", b"")
    assert read_frame(write_id(3), is_key=True, headers=[("__key_schema_id", None)]) == Frame(3, b"")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"{}", "starts with 0x7b"),
        (b"\x00\x00\x00", "ends after 3 bytes"),
        (b"\x01" + bytes(15), "ends after 16 bytes"),
        (b"\x00\xff\xff\xff\xff", "highest bit"),
    ],
)
def test_what_names_no_schema_is_said_so(data: bytes, words: str) -> None:
    with pytest.raises(NotFramed, match=words):
        read_frame(data, is_key=False)


@pytest.mark.parametrize(
    "indexes",
    ["", "80", "02", "01", "03", "02 01", "8202", "feffffff0f", "ffffffff0f", "808080808001", "02 ffffffffffffff7f"],
)
def test_hostile_indexes_are_an_invalid_value(indexes: str) -> None:
    with pytest.raises(InvalidValue):
        framing.read_message_indexes(bytes.fromhex(indexes))


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_a_frame_or_an_invalid_value(data: bytes, indexed: bool) -> None:
    try:
        message, payload = read_frame(data, is_key=False).content(indexed=indexed)
    except InvalidValue:
        return
    assert len(message) <= framing.MESSAGE_INDEXES_MAX
    assert data.endswith(payload)


@pytest.mark.parametrize("schema", [-1, 2**31])
def test_what_is_no_id_is_not_written(schema: int) -> None:
    with pytest.raises(InvalidValue, match="no schema id"):
        write_id(schema)


@pytest.mark.parametrize("message", [(-1,), (2**31,), tuple(range(65))])
def test_what_are_no_indexes_are_not_written(message: tuple[int, ...]) -> None:
    with pytest.raises(InvalidValue, match="no message indexes"):
        write_id(1, message)
