"""The JSON Schema of a column's type: what `JsonEncoder` writes of it, and nothing beside."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from moldau.spark.formats.interface import FormatError
from moldau.spark.formats.type_names import spark_name, struct_fields

DRAFT = "http://json-schema.org/draft-07/schema#"
INTEGERS = {pa.int8(): "int8", pa.int16(): "int16", pa.int32(): "int32", pa.int64(): "int64"}
NUMBERS = {pa.float32(): "float32", pa.float64(): "float64"}
TEXTS = (pa.string(), pa.large_string())
BYTES = (pa.binary(), pa.large_binary())


def json_schema_of(arrow_type: pa.DataType, *, title: str, place: str) -> dict[str, Any]:
    """Closed, so that a member which is added later is a compatible change."""
    return {"$schema": DRAFT, "title": title, **_schema(arrow_type, place)}


def _schema(kind: pa.DataType, place: str) -> dict[str, Any]:
    if pa.types.is_struct(kind):
        return _object(kind, place)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": _element(kind.value_field, place)}
    if pa.types.is_map(kind) and kind.key_type in TEXTS:
        return {"type": "object", "additionalProperties": _element(kind.item_field, place)}
    return _simple(kind, place)


def _object(kind: pa.StructType, place: str) -> dict[str, Any]:
    fields = struct_fields(kind)
    required = [field.name for field in fields if not field.nullable]
    made: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        # A member that is null is left out, so that none is ever null.
        "properties": {field.name: _schema(field.type, place) for field in fields},
    }
    return {**made, "required": required} if required else made


def _element(field: pa.Field, place: str) -> dict[str, Any]:
    schema = _schema(field.type, place)
    return {"oneOf": [{"type": "null"}, schema]} if field.nullable else schema


def _simple(kind: pa.DataType, place: str) -> dict[str, Any]:
    if kind in INTEGERS:
        return {"type": "integer", "connect.type": INTEGERS[kind]}
    if kind in NUMBERS:
        return {"type": "number", "connect.type": NUMBERS[kind]}
    if kind == pa.bool_():
        return {"type": "boolean"}
    if kind in TEXTS:
        return {"type": "string"}
    if kind in BYTES:
        return {"type": "string", "contentEncoding": "base64", "connect.type": "bytes"}
    if kind == pa.date32():
        return {"type": "string", "format": "date"}
    if pa.types.is_timestamp(kind):
        # Without a zone it is no instant, and "date-time" means one.
        return {"type": "string", "format": "date-time"} if kind.tz else {"type": "string"}
    if pa.types.is_decimal(kind):
        told = {"scale": str(kind.scale), "connect.decimal.precision": str(kind.precision)}
        return {"type": "number", "title": "org.apache.kafka.connect.data.Decimal", "connect.parameters": told}
    raise FormatError(f"{place}: JSON Schema has no form for {spark_name(kind)}")
