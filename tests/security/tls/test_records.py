"""Records are found by their headers, whatever the stream holds."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.security.tls.records import HEADER_BYTES, run_of_records

KIB = 1024
NO_LIMITS = {"records_max": 1 << 30, "bytes_max": 1 << 30}


def record(size: int, kind: int = 23) -> bytes:
    return struct.pack(">BBBH", kind, 3, 3, size) + bytes(size)


@given(st.lists(st.integers(0, 200), max_size=30), st.integers(0, 300), st.integers(1, 10), st.integers(1, 1000))
def test_a_run_is_whole_records_within_the_limits(sizes: list[int], cut: int, records_max: int, bytes_max: int) -> None:
    whole = b"".join(map(record, sizes))
    stream = whole[: max(0, len(whole) - cut)]
    ends = [0]
    for size in sizes:
        ends.append(ends[-1] + HEADER_BYTES + size)
    here = [end for end in ends if end <= len(stream)]
    allowed = [end for number, end in enumerate(here) if number <= records_max and (end <= bytes_max or number == 1)]
    count, end = run_of_records(stream, 0, records_max=records_max, bytes_max=bytes_max)
    assert (count, end) == (len(allowed) - 1, allowed[-1])


@given(st.binary(max_size=2_000), st.data())
def test_whatever_comes_a_run_moves_on_or_waits_for_one_record(stream: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(stream)))
    count, end = run_of_records(stream, at, records_max=4, bytes_max=16 * KIB)
    assert at <= end <= len(stream)
    assert (count == 0) == (end == at)
    if count == 0 and len(stream) - at >= HEADER_BYTES:
        assert len(stream) - at < HEADER_BYTES + int.from_bytes(stream[at + 3 : at + 5], "big")


@pytest.mark.parametrize(
    "stream",
    [b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x24\x00\x12\x00\x03", b"\x16\x02\x01\x00\x10\x00", record(19 * KIB)[:9]],
    ids=["http", "kafka", "another version", "too long"],
)
def test_what_is_no_record_is_not_waited_for(stream: bytes) -> None:
    assert run_of_records(stream, 0, **NO_LIMITS) == (1, len(stream))
    assert run_of_records(record(3) + stream, 0, **NO_LIMITS) == (2, 8 + len(stream))
