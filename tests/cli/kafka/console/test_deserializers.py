"""Bytes as text by the names of Java's deserializers."""

from __future__ import annotations

import struct

import pytest

from moldau.cli.failures import UsageError
from moldau.cli.kafka.console.deserializers import PACKAGE, Undecodable, deserializer, java_number


@pytest.mark.parametrize(
    ("kind", "content", "text"),
    [
        ("String", b"a\xff", "a�"),
        ("ByteArray", b"ab", "ab"),
        ("Long", struct.pack(">q", -5), "-5"),
        ("Integer", struct.pack(">i", 2**31 - 1), "2147483647"),
        ("Short", b"\xff\xfe", "-2"),
        ("Double", struct.pack(">d", 1e10), "1.0E10"),
        ("Float", struct.pack(">f", 0.1), "0.1"),
        ("Boolean", b"\x01", "true"),
        ("UUID", b"123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
        ("ByteBuffer", b"abc", "java.nio.HeapByteBuffer[pos=0 lim=3 cap=3]"),
        ("Bytes", b"a\\\x00", "a\\x5C\\x00"),
    ],
)
def test_every_kind(kind: str, content: bytes, text: str) -> None:
    assert deserializer(f"{PACKAGE}{kind}Deserializer", {}, option="value.deserializer")(content).decode() == text


@pytest.mark.parametrize(
    ("kind", "content"), [("Long", b"1"), ("Void", b""), ("UUID", b"x"), ("Boolean", b"\x02"), ("Float", b"")]
)
def test_bytes_of_another_kind(kind: str, content: bytes) -> None:
    with pytest.raises(Undecodable):
        deserializer(f"{PACKAGE}{kind}Deserializer", {}, option="value.deserializer")(content)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (100.0, "100.0"), (0.001, "0.001"), (0.00012, "1.2E-4"),
        (9999999.0, "9999999.0"), (1e7, "1.0E7"), (-123456789.125, "-1.23456789125E8"), (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"), (1.7976931348623157e308, "1.7976931348623157E308"), (0.5, "0.5"),
    ],
)  # fmt: skip
def test_numbers_as_java_writes_them(number: float, text: str) -> None:
    assert java_number(number) == text


def test_a_name_that_is_none() -> None:
    with pytest.raises(UsageError, match=r"did you mean .*LongDeserializer"):
        deserializer(f"{PACKAGE}LongDeserialiser", {}, option="value.deserializer")
