"""The codec's rules, each on a small class of its own."""

from __future__ import annotations

from typing import Annotated, ClassVar, cast

import pytest
from msgspec import Struct

from moldau.core.errors import ErrorCode, ProtocolViolation, Truncated
from moldau.wire.codec import decode, decoder, encode, encode_parts, encoder, encoder_in_steps
from moldau.wire.encoding import JOIN_BYTES_MAX, PIECES_MAX
from moldau.wire.messages import (
    DescribeConfigsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FetchResponse,
    MetadataRequest,
    ProduceRequest,
    ProduceResponse,
)
from moldau.wire.messages.describe_configs import DescribeConfigsResult
from moldau.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from moldau.wire.messages.fetch import FetchableTopicResponse, PartitionData
from moldau.wire.messages.leaders import NodeEndpoint
from moldau.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from moldau.wire.messages.produce import PartitionProduceResponse, TopicProduceResponse
from moldau.wire.schema import (
    IGNORABLE,
    Bytes,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    Uuid,
    fields_of,
    since,
    tagged,
    until,
)
from moldau.wire.unencodable import EncodeError
from moldau.wire.varint import write_uvarint
from tests.wire.message_values import CASE_IDS, CASES, sample


class Part(Struct, gc=False):
    number: Int32 = 0
    word: Annotated[str | None, since(1)] = None


class Leader(Struct, frozen=True, gc=False):
    id: Int32 = -1


class Example(Struct, gc=False):
    API_KEY: ClassVar[int] = 999
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_FROM: ClassVar[int] = 2

    flag: bool = False
    tiny: Int8 = 0
    big: Int64 = 0
    name: str = ""
    blob: Bytes | None = None
    ratio: float = 0.0
    parts: list[Part] = []
    numbers: list[Int16] | None = []
    ids: list[Uuid] = []
    dropped: Annotated[Int32, since(1), IGNORABLE] = -1
    demanded: Annotated[Int32, since(1)] = -1
    former: Annotated[str, until(0), IGNORABLE] = ""
    leader: Annotated[Leader, tagged(0, since=2)] = Leader()
    rack: Annotated[str | None, tagged(1, since=3), IGNORABLE] = None
    records: Records | None = None


class FileRange:
    """Something that has a length and is no buffer."""

    def __len__(self) -> int:
        return 70_000


def test_version_0_byte_by_byte() -> None:
    message = Example(
        flag=True, tiny=-2, big=3, name="é", blob=b"xy", ratio=1.0, parts=[Part(number=7)], numbers=[1, -1], former="f"
    )
    expected = (
        b"\1\xfe\0\0\0\0\0\0\0\3"
        b"\0\2\xc3\xa9"
        b"\0\0\0\2xy"
        b"\x3f\xf0\0\0\0\0\0\0"
        b"\0\0\0\1\0\0\0\7"
        b"\0\0\0\2\0\1\xff\xff"
        b"\0\0\0\0"
        b"\0\1f"
        b"\xff\xff\xff\xff"
    )
    assert encode(message, 0) == expected
    assert decode(Example, 0, expected) == (message, len(expected))


def test_a_flexible_version_byte_by_byte() -> None:
    message = Example(
        name="é",
        parts=[Part(number=7, word="w")],
        numbers=None,
        ids=[bytes(range(16))],
        demanded=5,
        leader=Leader(id=9),
        rack="r",
        records=b"rec",
    )
    expected = (
        bytes(10) + b"\3\xc3\xa9" + b"\0" + bytes(8) + b"\2\0\0\0\7\2w\0" + b"\0" + b"\2" + bytes(range(16))
        + b"\xff\xff\xff\xff\0\0\0\5"
        + b"\4rec"
        + b"\2" + b"\0\5\0\0\0\x09\0" + b"\1\2\2r"
    )  # fmt: skip
    assert encode(message, 3) == expected
    assert decode(Example, 3, expected) == (message, len(expected))


def test_a_tag_at_its_default_is_not_written() -> None:
    assert encode(Example(leader=Leader(id=-1)), 3) == encode(Example(), 3)
    assert encode(Example(), 3).endswith(b"\0\0")


def test_a_field_that_may_be_dropped_is_dropped() -> None:
    assert encode(Example(dropped=7, rack="r"), 0) == encode(Example(), 0)
    assert decode(Example, 0, encode(Example(dropped=7), 0))[0].dropped == -1


def test_a_field_that_may_not_be_dropped_is_an_error() -> None:
    with pytest.raises(ValueError, match="Example version 0 cannot carry demanded = 7"):
        encode(Example(demanded=7), 0)
    with pytest.raises(ValueError, match="Example version 1 cannot carry leader"):
        encode(Example(leader=Leader(id=1)), 1)
    with pytest.raises(ValueError, match="Part version 0 cannot carry word"):
        encode(Example(parts=[Part(word="w")]), 0)


def test_null_is_an_error_where_a_version_has_no_null() -> None:
    with pytest.raises(ValueError, match="MetadataRequest version 0 cannot carry topics = None"):
        encode(MetadataRequest(topics=None), 0)
    assert encode(MetadataRequest(topics=None), 1) == b"\xff\xff\xff\xff"


def error_of(message: Message, version: int) -> str | None:
    try:
        encode(message, version)
    except EncodeError as error:
        return str(error)
    return None


@pytest.mark.parametrize(("cls", "version"), CASES, ids=CASE_IDS)
def test_an_encoder_fails_with_the_declared_error_only(cls: type[Message], version: int) -> None:
    """Every field with values that few of them can carry."""
    for field in (each for each in fields_of(cast("type[Struct]", cls)) if version in each.versions):
        for wrong in (None, 2**70, -(2**70), "x" * 40_000, "\ud800", object(), [object()], [None], b"", 0.5, {1: 2}):
            message = sample(cls, version)
            setattr(message, field.name, wrong)
            error = error_of(message, version)
            assert error is None or field.name in error


@pytest.mark.parametrize("version", [0, 5])
def test_an_error_names_the_field(version: int) -> None:
    long = DescribedGroup(members=[DescribedGroupMember(), DescribedGroupMember(member_id="m" * 32_768)])
    message = DescribeGroupsResponse(groups=[DescribedGroup(), long])
    with pytest.raises(
        EncodeError, match=r"^DescribeGroupsResponse.groups\[1\].members\[1\].member_id, a string of 32768"
    ):
        encode(message, version)
    long.members[1].member_id = "m" * 32_767
    assert decode(DescribeGroupsResponse, version, encode(message, version))[0] == message


@pytest.mark.parametrize("version", [1, 5])
def test_words_for_people_are_cut_to_what_fits(version: int) -> None:
    message = DescribeConfigsResponse(results=[DescribeConfigsResult(error_message="x" + "ž" * 20_000)])
    (result,) = decode(DescribeConfigsResponse, 1, encode(message, 1))[0].results
    assert result.error_message == "x" + "ž" * 16_383


def test_a_compact_string_is_no_longer_than_an_old_one() -> None:
    fits = encode(DescribeGroupsRequest(groups=["g" * 32_767]), 5)
    assert decode(DescribeGroupsRequest, 5, fits)[0].groups == ["g" * 32_767]
    longer = fits.replace(write_uvarint(32_768), write_uvarint(32_769)) + b"g"
    with pytest.raises(ProtocolViolation, match="groups may not have a length or count of 32768"):
        decode(DescribeGroupsRequest, 5, longer)


@pytest.mark.parametrize(
    ("message", "version", "is_split"),
    [
        (
            OffsetFetchResponse(
                groups=[
                    OffsetFetchResponseGroup(
                        group_id=f"group-{number}",
                        topics=[
                            OffsetFetchResponseTopics(
                                name="orders", partitions=[OffsetFetchResponsePartitions(index) for index in range(3)]
                            )
                        ],
                    )
                    for number in range(PIECES_MAX)
                ]
            ),
            8,
            True,
        ),
        (FetchResponse(node_endpoints=[NodeEndpoint(number, "host", 1) for number in range(PIECES_MAX)]), 16, False),
    ],
    ids=["rows within rows", "the rows of a tag belong together"],
)
def test_very_many_rows_are_joined_some_at_a_time(message: Message, version: int, is_split: bool) -> None:
    parts: list[bytes] = []
    encoder_in_steps(type(message), version)(message, parts)
    whole = encode(message, version)
    assert (b"".join(parts) == whole, len(parts) > 1) == (True, is_split)
    assert not is_split or max(map(len, parts)) < len(whole) // 4


def test_a_version_that_the_class_lacks_is_an_error() -> None:
    for function in (encoder, decoder):
        with pytest.raises(ValueError, match="ProduceRequest has versions 3 to 13, not 2"):
            function(ProduceRequest, 2)


def test_functions_are_compiled_once() -> None:
    assert decoder(Example, 1) is decoder(Example, 1)
    assert encoder(Example, 1) is encoder(Example, 1)


def test_decoded_bytes_are_views_of_the_frame() -> None:
    frame = bytearray(encode(Example(blob=b"blob", records=b"records"), 1))
    message, _ = decode(Example, 1, frame)
    frame[-7:] = b"RECORDS"
    assert isinstance(message.records, memoryview)
    assert isinstance(message.blob, memoryview)
    assert bytes(message.records) == b"RECORDS"
    assert not message.records.readonly


def test_decoding_begins_where_it_is_told() -> None:
    raw = encode(Example(name="n"), 2)
    assert decode(Example, 2, b"prefix" + raw + b"suffix", 6) == (Example(name="n"), 6 + len(raw))


def test_large_records_are_placed_and_not_copied() -> None:
    large, lazy = bytes(JOIN_BYTES_MAX + 1), FileRange()
    partitions = [PartitionData(partition_index=index, records=records) for index, records in enumerate((large, lazy))]
    message = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    for version in (4, 12):
        before, first, between, second, *after = encode_parts(message, version)
        assert first is large
        assert second is lazy
        assert all(isinstance(part, bytes) for part in (before, between, *after))
        assert b"" not in after, "an empty buffer costs a system call"


def test_small_and_empty_records_are_joined() -> None:
    partitions = [PartitionData(records=b"small"), PartitionData(records=b""), PartitionData(records=None)]
    message = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    for version in (4, 12):
        (raw,) = encode_parts(message, version)
        decoded = decode(FetchResponse, version, raw)[0].responses[0].partitions
        assert [each.records for each in decoded] == [b"small", b"", None]


def test_an_error_code_is_a_number_on_the_wire() -> None:
    partition = PartitionProduceResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, base_offset=-1)
    message = ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[partition])])
    assert decode(ProduceResponse, 9, encode(message, 9))[0].responses[0].partition_responses[0].error_code == 6


def test_an_empty_frame_is_truncated() -> None:
    with pytest.raises(Truncated):
        decode(Example, 3, b"")


def test_a_field_needs_a_default() -> None:
    class Wrong(Struct):
        API_KEY: ClassVar[int] = 998
        VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
        FLEXIBLE_FROM: ClassVar[int] = 1

        number: Int32

    with pytest.raises(TypeError, match=r"Wrong\.number needs a default"):
        decoder(Wrong, 0)
