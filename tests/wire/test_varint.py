from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.core.errors import ProtocolViolation, Truncated
from moldau.wire.varint import read_uvarint, read_varint, read_varlong, write_uvarint, write_varint


@pytest.mark.parametrize(
    ("value", "raw"),
    [(0, b"\0"), (127, b"\x7f"), (128, b"\x80\1"), (300, b"\xac\2"), (2**32 - 1, b"\xff\xff\xff\xff\x0f")],
)
def test_unsigned_values_byte_by_byte(value: int, raw: bytes) -> None:
    assert write_uvarint(value) == raw
    assert read_uvarint(raw, 0) == (value, len(raw))


@pytest.mark.parametrize(("value", "raw"), [(0, b"\0"), (-1, b"\1"), (1, b"\2"), (-64, b"\x7f"), (64, b"\x80\1")])
def test_signed_values_byte_by_byte(value: int, raw: bytes) -> None:
    assert write_varint(value) == raw
    assert read_varint(raw, 0) == (value, len(raw))


@given(st.integers(-(2**63), 2**63 - 1))
def test_64_bit_values_come_back(value: int) -> None:
    raw = write_varint(value)
    assert read_varlong(b"x" + raw + b"y", 1) == (value, 1 + len(raw))


def test_what_ends_too_soon_or_never_is_refused() -> None:
    with pytest.raises(Truncated):
        read_uvarint(b"\x80", 0)
    with pytest.raises(Truncated):
        read_uvarint(b"", 0)
    with pytest.raises(ProtocolViolation, match="5 bytes"):
        read_varint(b"\x80" * 20, 0)
    with pytest.raises(ProtocolViolation, match="10 bytes"):
        read_varlong(b"\x80" * 20, 0)
