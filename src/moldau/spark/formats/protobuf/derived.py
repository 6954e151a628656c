"""The text of a message for a column's type. What a schema of the subject has numbers for keeps its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from moldau.spark.formats.interface import FormatError
from moldau.spark.formats.protobuf.types import is_map, is_message
from moldau.spark.formats.type_names import spark_name, struct_fields

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SCALARS = {
    pa.bool_(): "bool", pa.int8(): "int32", pa.int16(): "int32", pa.int32(): "int32", pa.int64(): "int64",
    pa.float32(): "float", pa.float64(): "double", pa.string(): "string", pa.large_string(): "string",
    pa.binary(): "bytes", pa.large_binary(): "bytes", pa.date32(): "google.type.Date",
}  # fmt: skip
KEYS = ("bool", "int32", "int64", "string")
IMPORTS = {"google.protobuf.Timestamp": "google/protobuf/timestamp.proto", "google.type.Date": "google/type/date.proto"}
RESERVED = range(19_000, 20_000)


def proto_text_of(arrow_type: pa.DataType, *, full_name: str, known: Any = None, place: str) -> str:
    """`known` is the descriptor of the subject's message so far, if there is one."""
    if not pa.types.is_struct(arrow_type):
        raise FormatError(f"{place} is {spark_name(arrow_type)}: a message of Protobuf needs a struct")
    package, _, name = full_name.rpartition(".")
    lines = list(_message(_name(name, place), arrow_type, known, place))
    text = "\n".join(lines)
    imports = [f'import "{path}";' for type_name, path in IMPORTS.items() if type_name in text]
    head = ['syntax = "proto3";', *([f"package {package};"] if package else []), *imports]
    return "\n".join([*head, "", text, ""])


def _message(name: str, kind: pa.StructType, known: Any, place: str) -> Iterator[str]:
    fields = struct_fields(kind)
    if not fields:
        raise FormatError(f"{place}: a message needs at least one field")
    old = {} if known is None else known.fields_by_name
    numbers = _numbers([field.name for field in fields], old)
    yield f"message {name} {{"
    for field in fields:
        inner = f"{place}: field {field.name}"
        made, nested = _field_type(field, old.get(field.name), inner)
        yield from (f"  {line}" for line in nested)
        yield f"  {made} {_name(field.name, inner)} = {numbers[field.name]};"
    yield "}"


def _field_type(field: pa.Field, old: Any, place: str) -> tuple[str, list[str]]:
    """The type with its label, and the message that stands before it if it has one of its own."""
    kind = field.type
    if pa.types.is_map(kind):
        key, (item, nested) = SCALARS.get(kind.key_type, ""), _single(kind.item_type, field.name, _item(old), place)
        if key not in KEYS:
            raise FormatError(f"{place}: a map of Protobuf has keys of text or whole numbers, not {spark_name(kind)}")
        return f"map<{key}, {item}>", nested
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        single, nested = _single(kind.value_type, field.name, old, place)
        return f"repeated {single}", nested
    single, nested = _single(kind, field.name, old, place)
    return (f"optional {single}" if field.nullable else single), nested


def _single(kind: pa.DataType, name: str, old: Any, place: str) -> tuple[str, list[str]]:
    if pa.types.is_struct(kind):
        before = old.message_type if old is not None and is_message(old) else None
        # Confluent's names for messages in messages are the fields', in capitals.
        type_name = before.name if before is not None else "".join(part.capitalize() for part in name.split("_"))
        return type_name, list(_message(type_name, kind, before, place))
    if pa.types.is_timestamp(kind) and kind.tz:
        return "google.protobuf.Timestamp", []
    if kind not in SCALARS:
        raise FormatError(f"{place}: Protobuf has no form for {spark_name(kind)}; cast it, to string for example")
    return SCALARS[kind], []


def _item(old: Any) -> Any:
    return old.message_type.fields_by_name["value"] if old is not None and is_map(old) else None


def _numbers(names: list[str], old: Any) -> dict[str, int]:
    """A number once given is never another field's: those that are new come after all."""
    kept = {name: int(old[name].number) for name in names if name in old}
    following = max((int(field.number) for field in old.values()), default=0)
    for name in names:
        if name not in kept:
            following += 1
            following = RESERVED.stop if following in RESERVED else following
            kept[name] = following
    return kept


def _name(name: str, place: str) -> str:
    if not NAME.fullmatch(name):
        raise FormatError(f"{place}: {name!r}: Protobuf's names are letters, digits and _; rename the column")
    return name
