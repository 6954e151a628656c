"""Keys and values of records as text, by decoders as Apache Kafka names them or by one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

from moldau.cli.failures import UsageError
from moldau.wire.batch import Record

Decoder: TypeAlias = Callable[[bytes], Any]
Parser: TypeAlias = Callable[[Record], tuple[str | None, str | None]]

INTEGER_BYTES, LONG_BYTES = 4, 8


class Undecodable(Exception):
    """A record that is none of what it should be."""


def text(data: bytes) -> str:
    return data.decode(errors="replace")


def integer(data: bytes) -> int:
    return _number(data, INTEGER_BYTES)


def long_integer(data: bytes) -> int:
    return _number(data, LONG_BYTES)


def _number(data: bytes, size: int) -> int:
    if len(data) < size:
        raise Undecodable(f"{len(data)} bytes are no number of {size}")
    return int.from_bytes(data[:size], "big", signed=True)


# Apache Kafka's classes, by what their names have in common under the new package and the old one.
_KNOWN: Mapping[str, Decoder] = {
    "StringDecoder": text,
    "IntegerDecoder": integer,
    "LongDecoder": long_integer,
    "DefaultDecoder": bytes.hex,
}
PACKAGES = ("org.apache.kafka.tools.api.", "kafka.serializer.")


def decoder_named(name: str, *, option: str) -> Decoder:
    """One of Apache Kafka's, or `module:function` of one's own, which takes bytes."""
    for package in PACKAGES:
        if name.startswith(package) and name.removeprefix(package) in _KNOWN:
            return _KNOWN[name.removeprefix(package)]
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        known = ", ".join(f"{PACKAGES[0]}{each}" for each in _KNOWN)
        raise UsageError(f"{option}: unknown decoder {name!r}; there are {known}, and your own as MODULE:FUNCTION")
    try:
        found: Decoder = getattr(import_module(module), function)
    except (ImportError, AttributeError) as wrong:
        raise UsageError(f"{option}: {name}: {wrong}") from None
    if not callable(found):
        raise UsageError(f"{option}: {name} can't be called")
    return found


def parser_of(key: Decoder, value: Decoder) -> Parser:
    def parse(record: Record) -> tuple[str | None, str | None]:
        return _decoded(key, record.key, record), _decoded(value, record.value, record)

    return parse


def _decoded(decoder: Decoder, data: bytes | bytearray | memoryview | None, record: Record) -> str | None:
    if data is None:
        return None
    try:
        return str(decoder(bytes(data)))
    except Exception as wrong:  # a decoder of one's own may raise anything
        raise Undecodable(f"the decoder fails at offset {record.offset}: {wrong}") from wrong
