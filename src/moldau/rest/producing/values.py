"""Keys and values: from the JSON of a request to the bytes of a record, by the format that the request names."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from moldau.rest.calls import Json
from moldau.rest.problems import bad_request

BINARY, JSON, STRING = PLAIN = ("BINARY", "JSON", "STRING")
AVRO, JSONSCHEMA, PROTOBUF = WITH_SCHEMA = ("AVRO", "JSONSCHEMA", "PROTOBUF")
NULL = msgspec.Raw(b"null")
SHOWN_CHARS_MAX = 60


class Data(msgspec.Struct):
    """A key or a value, and how it is to be written."""

    type: str | None = None
    subject: str | None = None
    subject_name_strategy: str | None = None
    schema_id: int | None = None
    schema_version: int | None = None
    schema: str | None = None
    data: msgspec.Raw = NULL

    @property
    def names_schema(self) -> bool:
        said = (self.subject, self.subject_name_strategy, self.schema_id, self.schema_version, self.schema)
        return any(each is not None for each in said)


@dataclass(frozen=True, slots=True)
class Written:
    payload: bytes | None
    type: str | None = None
    subject: str | None = None
    schema_id: int | None = None
    schema_version: int | None = None

    def json(self) -> Json:
        found: Json = {"type": self.type, "size": len(self.payload or b"")}
        if self.subject is not None:
            found["subject"] = self.subject
        if self.schema_id is not None:
            found["schema_id"] = self.schema_id
        if self.schema_version is not None:
            found["schema_version"] = self.schema_version
        return found


MayRegister = Callable[[str], bool]
"""Whether somebody may add versions to a subject: the proxy does it by its own login."""


class SchemaWriter(Protocol):
    async def write(self, data: Data, topic: str, *, is_key: bool, may: MayRegister) -> Written:
        """By a schema of the registry. Raises ApiError."""

    async def write_all(self, data: Sequence[Data], topic: str, *, is_key: bool) -> list[Written]: ...


async def written(
    data: Data | None, topic: str, schemas: SchemaWriter, *, is_key: bool, may: MayRegister
) -> Written | None:
    """None if the request says nothing of a key or value. Raises ApiError."""
    if data is None:
        return None
    kind = None if data.type is None else data.type.upper()
    if kind is not None and kind not in (*PLAIN, *WITH_SCHEMA):
        raise bad_request(f"type {data.type!r}: expected one of {', '.join((*PLAIN, *WITH_SCHEMA))}")
    if kind in PLAIN:
        if data.names_schema:
            raise bad_request(f"type {kind} has no schema")
        return Written(plain(kind, data.data), kind)
    return await schemas.write(data, topic, is_key=is_key, may=may)


def is_null(raw: msgspec.Raw) -> bool:
    return bytes(raw) in (b"null", b"")


def plain(kind: str, raw: msgspec.Raw) -> bytes | None:
    """Bytes of what needs no schema. Raises ApiError 400."""
    if is_null(raw):
        return None
    if kind == JSON:
        return compact(raw)
    text = _text(raw)
    if text is None:
        raise bad_request(f"data={_shown(raw)} is not a {'base64 ' if kind == BINARY else ''}string.")
    if kind == STRING:
        return encoded(text)
    return from_base64(text)


def from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise bad_request(f"data={text[:SHOWN_CHARS_MAX]!r} is not a valid base64 string.") from None


def encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise bad_request("a string has half of a surrogate pair: that is no text") from None


def compact(raw: msgspec.Raw) -> bytes:
    """As it was sent, without white space: numbers keep all their digits."""
    try:
        found: bytes = msgspec.json.format(bytes(raw), indent=-1)
        found.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise bad_request(f"data={_shown(raw)} is not valid JSON.") from None
    return found


def _text(raw: msgspec.Raw) -> str | None:
    try:
        return msgspec.json.decode(raw, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _shown(raw: msgspec.Raw) -> str:
    return bytes(raw)[:SHOWN_CHARS_MAX].decode("utf-8", "replace")
