"""A schema that a user wrote: Spark's DDL, the JSON of `df.schema.json()`, or a JSON Schema document."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from moldau.spark.formats.ddl import SIMPLE, SUPPORTED, decimal_of, parse_ddl
from moldau.spark.formats.interface import FormatError
from moldau.spark.formats.type_names import struct_of

SIZED_TEXT = re.compile(r"(?:var)?char\(\d+\)")
COLLATIONS = "__COLLATIONS"  # where Spark's JSON has what the name of the type does not say
NO_COLLATIONS = "a collation is no part of a record; give the column one after the read"

JSON_SCHEMA_STRINGS = {"date": pa.date32(), "date-time": pa.timestamp("us", "UTC")}
JSON_SCHEMA_SIMPLE = {"boolean": pa.bool_(), "integer": pa.int64(), "number": pa.float64()}


def parse_schema_text(text: str, *, place: str) -> pa.DataType:
    """The Arrow type that a schema option asks for; `place` is the option's name."""
    stripped = text.strip()
    if not stripped:
        raise FormatError(f"{place} is empty; give Spark DDL such as 'id BIGINT, name STRING'")
    try:
        return _parsed_json(stripped, place=place) if is_json(stripped) else parse_ddl(stripped, place=place)
    except RecursionError:
        raise FormatError(f"{place}: types are nested too deeply") from None


def is_json(text: str) -> bool:
    """An object, or the name of a type as Spark's JSON has it."""
    return text.startswith(("{", '"'))


def _parsed_json(text: str, *, place: str) -> pa.DataType:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise FormatError(f"{place} begins like JSON and is not: {error}") from None
    if (
        isinstance(document, str)
        or "fields" in document
        or (document.get("type") in {"array", "map"} and "items" not in document)
    ):
        return from_spark_json(document, place=place)
    return from_json_schema(document, place=place)


def from_spark_json(document: Any, *, place: str) -> pa.DataType:
    """The type in the form of Spark's own `StructType.json()`."""
    if isinstance(document, str):
        return _spark_simple(document, place=place)
    if not isinstance(document, dict):
        raise FormatError(f"{place}: {document!r} is not a type")
    kind = document.get("type")
    try:
        if kind == "struct":
            return struct_of([_spark_field(field, place=place) for field in document["fields"]], place=place)
        if kind == "array":
            element = from_spark_json(document["elementType"], place=place)
            return pa.list_(pa.field("item", element, nullable=bool(document.get("containsNull", True))))
        if kind == "map":
            key = from_spark_json(document["keyType"], place=place)
            item = from_spark_json(document["valueType"], place=place)
            return pa.map_(key, pa.field("value", item, nullable=bool(document.get("valueContainsNull", True))))
    except KeyError as missing:
        raise FormatError(f"{place}: {missing} is missing in {json.dumps(document)[:80]}") from None
    raise FormatError(f"{place}: type {kind!r} is not one of {SUPPORTED}")


def _spark_field(field: Any, *, place: str) -> pa.Field:
    if COLLATIONS in field.get("metadata", {}):
        raise FormatError(f"{place}: field {field['name']}: {NO_COLLATIONS}")
    return pa.field(
        str(field["name"]), from_spark_json(field["type"], place=place), nullable=bool(field.get("nullable", True))
    )


def _spark_simple(name: str, *, place: str) -> pa.DataType:
    decimal = re.fullmatch(r"decimal(?:\((\d+),\s*(-?\d+)\))?", name)
    if decimal:
        return decimal_of(int(decimal[1] or 10), int(decimal[2] or 0), place=place)
    if SIZED_TEXT.fullmatch(name):
        return pa.string()
    if name not in SIMPLE:
        raise FormatError(f"{place}: type {name!r} is not one of {SUPPORTED}")
    return SIMPLE[name]


def from_json_schema(document: Mapping[str, Any], *, place: str) -> pa.DataType:
    """The shape that a JSON Schema describes; its rules about values (minimum, pattern and so on) are not checked."""
    kind, _ = _kind_of(document, place=place)
    if kind == "object":
        return _json_schema_object(document, place=place)
    if kind == "array":
        items = document.get("items")
        if not isinstance(items, dict):
            raise FormatError(f"{place}: an array needs one schema in 'items'")
        return pa.list_(
            pa.field("item", from_json_schema(items, place=place), nullable=_kind_of(items, place=place)[1])
        )
    if kind == "string":
        return JSON_SCHEMA_STRINGS.get(str(document.get("format")), pa.string())
    return JSON_SCHEMA_SIMPLE[kind]


def _json_schema_object(document: Mapping[str, Any], *, place: str) -> pa.DataType:
    properties = document.get("properties")
    others = document.get("additionalProperties")
    if not properties and isinstance(others, dict):
        item = pa.field("value", from_json_schema(others, place=place), nullable=_kind_of(others, place=place)[1])
        return pa.map_(pa.string(), item)
    required = set(document.get("required", ()))
    fields = [
        pa.field(
            name,
            from_json_schema(member, place=f"{place}: {name}"),
            nullable=name not in required or _kind_of(member, place=place)[1],
        )
        for name, member in (properties or {}).items()
    ]
    return struct_of(fields, place=place)


def _kind_of(document: Mapping[str, Any], *, place: str) -> tuple[str, bool]:
    """The one type that a schema allows, and whether null is allowed beside it."""
    kinds = document.get("type")
    listed = [kinds] if isinstance(kinds, str) else list(kinds or ())
    others = [kind for kind in listed if kind != "null"]
    if len(others) != 1 or others[0] not in {"object", "array", "string", *JSON_SCHEMA_SIMPLE}:
        raise FormatError(
            f"{place}: a JSON Schema is read where each 'type' is object, array, string, boolean, integer or number, "
            f"perhaps with null; found {json.dumps(kinds)}"
        )
    return others[0], "null" in listed
