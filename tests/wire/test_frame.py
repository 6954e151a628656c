"""Sizes and headers around messages."""

from __future__ import annotations

import pytest

from moldau.core.errors import ProtocolViolation, Truncated
from moldau.core.limits import TAGGED_FIELDS_MAX
from moldau.wire.api import ApiKey
from moldau.wire.frame import (
    RequestHeader,
    has_flexible_header,
    read_response_header,
    request_parts,
    response_parts,
)
from moldau.wire.messages import ApiVersionsResponse, ProduceResponse
from moldau.wire.request_header import read_request_header
from moldau.wire.varint import write_uvarint

FLEXIBLE = memoryview(b"\0\0\0\x09\0\0\0\x2a\0\2me\0body")
OLD = memoryview(b"\0\0\0\x08\0\0\0\x2a\xff\xffbody")


def test_a_flexible_request_header_ends_with_tags() -> None:
    header, at = read_request_header(FLEXIBLE)
    assert header == RequestHeader(api_key=ApiKey.PRODUCE, api_version=9, correlation_id=42, client_id="me")
    assert bytes(FLEXIBLE[at:]) == b"body"


def test_an_old_request_header_has_none() -> None:
    header, at = read_request_header(OLD)
    assert header == RequestHeader(api_key=ApiKey.PRODUCE, api_version=8, correlation_id=42, client_id=None)
    assert bytes(OLD[at:]) == b"body"


def test_tags_in_a_request_header_are_skipped_and_limited() -> None:
    start = bytes(FLEXIBLE[:12])
    raw = memoryview(start + b"\1\0\3abcbody")
    assert bytes(raw[read_request_header(raw)[1] :]) == b"body"
    with pytest.raises(ProtocolViolation):
        read_request_header(memoryview(start + write_uvarint(TAGGED_FIELDS_MAX + 1) + bytes(5000)))


def test_a_key_that_we_lack_can_still_be_named() -> None:
    header, _ = read_request_header(memoryview(b"\x03\xe7\0\1\0\0\0\1\0\1x"))
    assert (header.api_key, header.client_id) == (999, "x")


@pytest.mark.parametrize("size", range(13))
def test_a_request_header_cut_short_is_refused(size: int) -> None:
    with pytest.raises(Truncated):
        read_request_header(FLEXIBLE[:size] if size < 13 else FLEXIBLE)


def test_a_client_id_must_be_text() -> None:
    with pytest.raises(ProtocolViolation, match="UTF-8"):
        read_request_header(memoryview(b"\0\0\0\x08\0\0\0\x2a\0\1\xff"))
    with pytest.raises(ProtocolViolation, match="length of -2"):
        read_request_header(memoryview(b"\0\0\0\x08\0\0\0\x2a\xff\xfe"))


def test_a_request_frame_is_read_back() -> None:
    for client_id in ("me", None):
        for version, is_flexible in ((8, False), (9, True)):
            header = RequestHeader(ApiKey.PRODUCE, version, 7, client_id)
            frame = b"".join(request_parts(header, [b"bo", b"dy"], is_flexible=is_flexible))
            assert int.from_bytes(frame[:4], "big") == len(frame) - 4
            content = memoryview(frame)[4:]
            read, at = read_request_header(content)
            assert (read, bytes(content[at:])) == (header, b"body")


def test_a_response_frame_has_size_and_correlation_id_in_front() -> None:
    assert response_parts(42, [b"body"], is_flexible=has_flexible_header(ProduceResponse, 8)) == [
        b"\0\0\0\x08\0\0\0\x2abody"
    ]
    assert response_parts(42, [b"body"], is_flexible=has_flexible_header(ProduceResponse, 9)) == [
        b"\0\0\0\x09\0\0\0\x2a\0body"
    ]
    assert response_parts(42, [], is_flexible=has_flexible_header(ProduceResponse, 8)) == [b"\0\0\0\x04\0\0\0\x2a"]


def test_parts_after_the_first_are_left_as_they_are() -> None:
    large = bytes(5000)
    start, second, third = response_parts(1, [b"a", large, b"b"], is_flexible=True)
    assert int.from_bytes(start[:4], "big") == 4 + 1 + 1 + 5000 + 1
    assert (start[9:], third) == (b"a", b"b")
    assert second is large


def test_api_versions_is_answered_with_the_oldest_header() -> None:
    assert response_parts(42, [b"body"], is_flexible=has_flexible_header(ApiVersionsResponse, 4)) == [
        b"\0\0\0\x08\0\0\0\x2abody"
    ]
    assert read_response_header(memoryview(b"\0\0\0\x2abody"), ApiVersionsResponse, 4) == (42, 4)


def test_a_response_header_is_read_back() -> None:
    assert read_response_header(memoryview(b"\xff\xff\xff\xffbody"), ProduceResponse, 8) == (-1, 4)
    assert read_response_header(memoryview(b"\0\0\0\x2a\0body"), ProduceResponse, 9) == (42, 5)
    with pytest.raises(Truncated):
        read_response_header(memoryview(b"\0\0\0"), ProduceResponse, 8)
