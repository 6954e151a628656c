"""The records of `__consumer_offsets` and `__transaction_state` as the JSON that Apache Kafka's formatters write."""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from moldau.client.fetched import FetchedRecord
from moldau.core.ids import format_uuid
from moldau.groups.schemas import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from moldau.transactions.schemas import TransactionLogKey, TransactionLogValue
from moldau.wire.codec import decode
from moldau.wire.schema import Field, Kind, fields_of

Schemas = Mapping[int, tuple[type[Any], type[Any]]]
"""The messages of key and value by the kind that a key begins with."""

_VERSION = struct.Struct(">h")
OLD_OFFSET_KEY = 0
OFFSETS: Schemas = MappingProxyType(
    {
        OLD_OFFSET_KEY: (OffsetCommitKey, OffsetCommitValue),
        OffsetCommitKey.API_KEY: (OffsetCommitKey, OffsetCommitValue),
    }
)
GROUPS: Schemas = MappingProxyType({GroupMetadataKey.API_KEY: (GroupMetadataKey, GroupMetadataValue)})
TRANSACTIONS: Schemas = MappingProxyType({TransactionLogKey.API_KEY: (TransactionLogKey, TransactionLogValue)})


def decoder(schemas: Schemas) -> Callable[[FetchedRecord], bytes]:
    """Nothing for a record of another kind. ValueError or ProtocolViolation for one that is damaged."""

    def shown(record: FetchedRecord) -> bytes:
        if record.key is None or len(record.key) < _VERSION.size:
            return b""
        kind = _version(record.key)
        if kind not in schemas:
            return b""
        of_key, of_value = schemas[kind]
        value = None if record.value is None else _versioned(of_value, record.value)
        data = as_json(decode(of_key, 0, memoryview(record.key), _VERSION.size)[0], 0)
        told = {"key": {"type": kind, "data": data}, "value": value}
        return json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode()

    return shown


def _versioned(schema: type[Any], content: bytes) -> dict[str, object]:
    version = _version(content)
    oldest, newest = schema.VERSIONS
    if not oldest <= version <= newest:
        raise ValueError(f"version {version} of a value; known are {oldest} to {newest}")
    return {
        "version": version,
        "data": as_json(decode(schema, version, memoryview(content), _VERSION.size)[0], version),
    }


def _version(content: bytes) -> int:
    if len(content) < _VERSION.size:
        raise ValueError(f"{len(content)} bytes have no version")
    version: int = _VERSION.unpack_from(content)[0]
    return version


def as_json(message: Struct, version: int) -> dict[str, object]:
    """The fields that this version has; a tagged one that has its default is not written, and so not shown."""
    told: dict[str, object] = {}
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if version not in field.versions or (field.tag is not None and value == field.default()):
            continue
        told[_camel_case(field.name)] = _shown(value, field, version)
    return told


def _shown(value: Any, field: Field, version: int) -> object:
    if value is None:
        return None
    if field.is_array:
        return [as_json(each, version) if isinstance(each, Struct) else each for each in value]
    if field.type is Kind.UUID:
        return format_uuid(bytes(value))
    if field.type is Kind.BYTES:
        return b64encode(value).decode()
    return as_json(value, version) if isinstance(value, Struct) else value


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)
