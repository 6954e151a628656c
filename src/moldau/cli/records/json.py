"""Records as JSON, one object a line: what `moldau consume -o json` writes, `moldau produce -i json` reads back.

A key, value or header value is a string if its bytes are UTF-8, `{"base64": "..."}` if they are not, and null if there
are none. Headers are a list of pairs, because Kafka keeps their order and allows a name twice.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, field

from moldau.client.fetched import FetchedRecord

NO_TIMESTAMP = -1

# JSON leaves these as they are, and many a reader of lines would break a line there.
LINE_BREAKS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})

Headers = list[tuple[str, bytes | None]]

FIELDS = {"topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers"}


@dataclass(frozen=True, slots=True)
class OutgoingRecord:
    key: bytes | None
    value: bytes | None
    headers: Headers = field(default_factory=list)
    partition: int | None = None
    timestamp_ms: int | None = None


def record_as_json(record: FetchedRecord) -> str:
    """One line for a record that was read."""
    has_time = record.timestamp_ms != NO_TIMESTAMP
    line = json.dumps(
        {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp_ms if has_time else None,
            "timestamp_type": ("append" if record.is_append_time else "create") if has_time else None,
            "key": bytes_as_json(record.key),
            "value": bytes_as_json(record.value),
            "headers": [[name.decode(errors="replace"), bytes_as_json(value)] for name, value in record.headers],
        },
        ensure_ascii=False,
    )
    return line.translate(LINE_BREAKS)


def record_from_json(line: bytes) -> OutgoingRecord:
    """The record that a line describes; ValueError says what is wrong with it."""
    try:
        described = json.loads(line)
    except ValueError as wrong:
        raise ValueError(f"not JSON: {wrong}") from None
    if not isinstance(described, dict):
        raise ValueError('expected an object such as {"key": "a", "value": "b"}')
    unknown = sorted(described.keys() - FIELDS)
    if unknown:
        raise ValueError(f"unknown field {unknown[0]!r}; known are {', '.join(sorted(FIELDS))}")
    return OutgoingRecord(
        key=bytes_from_json("key", described.get("key")),
        value=bytes_from_json("value", described.get("value")),
        headers=headers_from_json(described.get("headers")),
        partition=whole_number("partition", described.get("partition"), bits=31),
        timestamp_ms=whole_number("timestamp", described.get("timestamp"), bits=63),
    )


def bytes_as_json(content: bytes | None) -> str | dict[str, str] | None:
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(content).decode()}


def bytes_from_json(name: str, content: object) -> bytes | None:
    match content:
        case None:
            return None
        case str():
            return content.encode()
        case {"base64": str(encoded), **others} if not others:
            return decode_base64(name, encoded)
    raise ValueError(f'{name}: expected a string, null or {{"base64": "..."}}')


def decode_base64(name: str, encoded: str) -> bytes:
    try:
        return b64decode(encoded, validate=True)
    except ValueError as wrong:
        raise ValueError(f"{name}: not base64: {wrong}") from None


def headers_from_json(headers: object) -> Headers:
    match headers:
        case None:
            return []
        case list():
            return [header_from_json(header) for header in headers]
    raise ValueError('headers: expected a list of pairs such as [["name", "value"]]')


def header_from_json(header: object) -> tuple[str, bytes | None]:
    match header:
        case [str(name), value]:
            return name, bytes_from_json(f"header {name!r}", value)
    raise ValueError('headers: expected a list of pairs such as [["name", "value"]]')


def whole_number(name: str, number: object, *, bits: int) -> int | None:
    if number is None or (isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**bits):
        return number
    raise ValueError(f"{name}: expected a whole number or null, from 0 to {2**bits - 1}")
