"""Records as JSON: as v2's formats have them, and as streams do, where each value says what it is.

JSON within a record is not read but copied, so that its numbers keep all their digits.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from moldau.rest.calls import Json
from moldau.rest.consuming.instances import Format
from moldau.rest.producing.values import BINARY, JSON, STRING
from moldau.rest.times import iso
from moldau.schemas.model import InvalidValue

Render = Callable[[Any], Json]
TIMESTAMP_TYPES = {1: "CREATE_TIME", 2: "LOG_APPEND_TIME"}


class StreamFormat(StrEnum):
    AUTO = "auto"
    BINARY = "binary"
    STRING = "string"
    JSON = "json"
    SCHEMA = "schema"


class SchemaReader(Protocol):
    """Values by the schemas of a registry; called in threads."""

    def read(self, payload: bytes, record: Any, *, is_key: bool) -> Json:
        """`type`, `schema_id` and `data`. Raises NotFramed for bytes without a schema, else InvalidValue."""


class NoSchemas:
    def read(self, payload: bytes, record: Any, *, is_key: bool) -> Json:  # noqa: ARG002
        raise InvalidValue("the proxy has no schema registry: schema.registry.url")


def encoded_records(records: Sequence[Json] | Json) -> bytes:
    return msgspec.json.encode(records)


def v2_renderer(kind: Format, schemas: SchemaReader) -> Render:
    def value(payload: bytes | None, record: Any, *, is_key: bool) -> object:
        if payload is None:
            return None
        if kind is Format.BINARY:
            return base64.b64encode(payload).decode()
        if kind is Format.JSON:
            return json_of(payload)
        return schemas.read(payload, record, is_key=is_key)["data"]

    def render(record: Any) -> Json:
        return {
            "topic": record.topic(),
            "key": value(record.key(), record, is_key=True),
            "value": value(record.value(), record, is_key=False),
            "partition": record.partition(),
            "offset": record.offset(),
        }

    return render


def stream_renderer(key: StreamFormat, value: StreamFormat, schemas: SchemaReader) -> Render:
    def render(record: Any) -> Json:
        kind, timestamp_ms = record.timestamp()
        timed = {"timestamp": iso(timestamp_ms), "timestamp_type": TIMESTAMP_TYPES[kind]} if kind else {}
        return {
            "topic_name": record.topic(),
            "partition_id": record.partition(),
            "offset": record.offset(),
            **timed,
            "headers": [{"name": name, "value": _base64(content)} for name, content in record.headers() or ()],
            "key": _shown(record.key(), key, record, schemas, is_key=True),
            "value": _shown(record.value(), value, record, schemas, is_key=False),
        }

    return render


def _shown(
    payload: bytes | None, wanted: StreamFormat, record: Any, schemas: SchemaReader, *, is_key: bool
) -> Json | None:
    """What cannot be shown as wanted is shown as bytes, with the reason: one such record does not end a stream."""
    if payload is None:
        return None
    if wanted is StreamFormat.AUTO:
        return _guessed(payload, record, schemas, is_key=is_key)
    try:
        if wanted is StreamFormat.SCHEMA:
            return schemas.read(payload, record, is_key=is_key)
        if wanted is StreamFormat.JSON:
            return {"type": JSON, "data": json_of(payload)}
        if wanted is StreamFormat.STRING:
            return {"type": STRING, "data": text_of(payload)}
    except InvalidValue as wrong:
        return {"type": BINARY, "data": _base64(payload), "error": str(wrong)}
    return {"type": BINARY, "data": _base64(payload)}


def _guessed(payload: bytes, record: Any, schemas: SchemaReader, *, is_key: bool) -> Json:
    """By a schema if it names one that the registry has, else JSON's objects and arrays, else text, else bytes."""
    try:
        return schemas.read(payload, record, is_key=is_key)
    except InvalidValue:
        pass
    try:
        if payload[:1] in b"{[" and payload:
            return {"type": JSON, "data": json_of(payload)}
    except InvalidValue:
        pass
    try:
        return {"type": STRING, "data": text_of(payload)}
    except InvalidValue:
        return {"type": BINARY, "data": _base64(payload)}


def text_of(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError as wrong:
        raise InvalidValue(f"no UTF-8: {wrong.reason} at byte {wrong.start}") from None


def json_of(payload: bytes) -> msgspec.Raw:
    text_of(payload)
    try:
        msgspec.json.decode(payload, type=msgspec.Raw)
        return msgspec.Raw(msgspec.json.format(payload, indent=-1))
    except (msgspec.DecodeError, RecursionError) as wrong:
        raise InvalidValue(f"no JSON: {wrong}") from None


def _base64(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()
