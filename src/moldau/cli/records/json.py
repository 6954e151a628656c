"""Records as JSON, one object a line: what `moldau consume -o json` writes, `moldau produce -i json` reads back.

A key, value or header value is a string if its bytes are UTF-8, `{"base64": "..."}` if they are not, and null if there
are none. Headers are a list of pairs, because Kafka keeps their order and allows a name twice.

With a schema registry a key or value may be the JSON value that a schema wrote: `key_schema` or `value_schema` beside
it names the schema, and by that a reader tells it from a string or base64. Where that is null or missing, the rule
above holds.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from moldau.client.fetched import FetchedRecord

NO_TIMESTAMP = -1

# JSON leaves these as they are, and many a reader of lines would break a line there.
LINE_BREAKS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})

Headers = list[tuple[str, bytes | None]]

FIELDS = {
    *("topic", "partition", "offset", "timestamp", "timestamp_type"),
    *("key", "value", "headers", "key_schema", "value_schema"),
}
NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class OutgoingRecord:
    key: bytes | None
    value: bytes | None
    headers: Headers = field(default_factory=list)
    partition: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A key or value that a schema wrote; the headers that name it come in the place of one that did so before."""

    content: bytes | None
    headers: Headers
    replaces: str


BySchema = Callable[[str, object, object], Written | None]
"""Of "key" or "value", its JSON and the schema that is named beside it; None if it is not written by one."""


def record_as_json(record: FetchedRecord, decoded: Mapping[str, object] = NOTHING) -> str:
    """One line for a record that was read, some of whose fields may have been decoded."""
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
            **decoded,
        },
        ensure_ascii=False,
    )
    return line.translate(LINE_BREAKS)


def record_from_json(line: bytes, by_schema: BySchema | None = None) -> OutgoingRecord:
    """The record that a line describes; ValueError says what is wrong with it."""
    try:
        described = json.loads(line)
    except ValueError as wrong:
        raise ValueError(f"not JSON: {wrong}") from None
    except RecursionError:
        raise ValueError("not JSON that can be read: nested too deep") from None
    if not isinstance(described, dict):
        raise ValueError('expected an object such as {"key": "a", "value": "b"}')
    unknown = sorted(described.keys() - FIELDS)
    if unknown:
        raise ValueError(f"unknown field {unknown[0]!r}; known are {', '.join(sorted(FIELDS))}")
    headers = headers_from_json(described.get("headers"))
    contents: dict[str, bytes | None] = {}
    for part in ("key", "value"):
        written = _written(part, described, by_schema)
        if written is None:
            contents[part] = bytes_from_json(part, described.get(part))
        else:
            contents[part] = written.content
            headers = [each for each in headers if each[0] != written.replaces] + written.headers
    return OutgoingRecord(
        **contents,
        headers=headers,
        partition=whole_number("partition", described.get("partition"), bits=31),
        timestamp_ms=time_from_json(described.get("timestamp")),
    )


def _written(part: str, described: Mapping[str, object], by_schema: BySchema | None) -> Written | None:
    named = described.get(f"{part}_schema")
    if by_schema is not None:
        return by_schema(part, described.get(part), named)
    if named is not None:
        raise ValueError(f"{part}_schema: of which registry? Give --registry URL")
    return None


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
            name.encode()  # half of a pair of surrogates would end the process in the client library
            return name, bytes_from_json(f"header {name!r}", value)
    raise ValueError('headers: expected a list of pairs such as [["name", "value"]]')


def time_from_json(number: object) -> int | None:
    """What happened before 1970 has a negative one, too."""
    if number == NO_TIMESTAMP:
        raise ValueError(f"timestamp: expected a whole number or null, which says what {NO_TIMESTAMP} would: none")
    return whole_number("timestamp", number, bits=63, least=-(2**63))


def whole_number(name: str, number: object, *, bits: int, least: int = 0) -> int | None:
    if number is None or (isinstance(number, int) and not isinstance(number, bool) and least <= number < 2**bits):
        return number
    raise ValueError(f"{name}: expected a whole number or null, from {least} to {2**bits - 1}")
