"""A typed Arrow column to messages of a given class."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import EncodeError

from moldau.spark.formats.interface import EncodingFailed, FormatError, Side
from moldau.spark.formats.protobuf.decoder import MICROS
from moldau.spark.formats.protobuf.types import (
    AS_JSON,
    DATE,
    TIMESTAMP,
    WRAPPERS,
    field_type,
    is_map,
    is_message,
    is_repeated,
)
from moldau.spark.formats.type_names import spark_name, struct_fields

Fill = Callable[[Any, Any], None]
UNWRITABLE = (EncodeError, ValueError, TypeError, OverflowError, json_format.Error)


@dataclass(frozen=True)
class ProtobufEncoder:
    """Fields by name; what is null is left out."""

    message: Any
    side: Side

    def check(self, arrow_type: pa.DataType) -> None:
        if not pa.types.is_struct(arrow_type):
            raise FormatError(f"column {self.side} is {spark_name(arrow_type)}: a message of Protobuf needs a struct")
        _check(arrow_type, self.message.DESCRIPTOR, place=f"column {self.side}")

    def encode(self, column: pa.Array) -> pa.BinaryArray:
        return pa.array([self._written(row, value) for row, value in enumerate(_plain(column))], pa.binary())

    def _written(self, row: int, value: Any) -> bytes | None:
        if value is None:
            return None
        message = self.message()
        try:
            _fill(message, value)
            return bytes(message.SerializeToString(deterministic=True))
        except UNWRITABLE as wrong:
            raise EncodingFailed(f"{self.side}: row {row}: {wrong}") from None


def _check(given: pa.StructType, message: Any, *, place: str) -> None:
    fields = message.fields_by_name
    for each in struct_fields(given):
        inner = f"{place}: field {each.name}"
        if each.name not in fields:
            raise FormatError(f"{inner} is not in the schema's message {message.full_name}")
        wanted = fields[each.name]
        kind = each.type
        if is_map(wanted) != pa.types.is_map(kind) or (not is_map(wanted) and is_repeated(wanted) != _is_list(kind)):
            raise FormatError(f"{inner}: {spark_name(kind)} does not fit {spark_name(field_type(wanted, place=inner))}")
        value, of = (kind.item_type, wanted.message_type.fields_by_name["value"]) if is_map(wanted) else (kind, wanted)
        _check_single(value.value_type if _is_list(value) else value, of, place=inner)


def _check_single(kind: pa.DataType, wanted: Any, *, place: str) -> None:
    if is_message(wanted) and pa.types.is_struct(kind):
        _check(kind, wanted.message_type, place=place)
        return
    if pa.types.is_nested(kind) or (is_message(wanted) and not _is_one_value(wanted.message_type)):
        raise FormatError(f"{place}: {spark_name(kind)} does not fit the message's field")
    expected = field_type(wanted, place=place)
    expected = expected.value_type if _is_list(expected) else expected
    try:
        pa.nulls(0, kind).cast(expected)
    except pa.ArrowException:
        raise FormatError(f"{place}: {spark_name(kind)} does not fit {spark_name(expected)}") from None


def _is_one_value(message: Any) -> bool:
    return message.full_name in {TIMESTAMP, DATE} | WRAPPERS | AS_JSON or not message.fields


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _plain(column: pa.Array) -> list[Any]:
    """Instants as whole microseconds: Python's own times end before Spark's do."""
    return pa.array(column).cast(_with_numbers(column.type)).to_pylist()  # type: ignore[no-any-return]


def _with_numbers(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_with_numbers(each.type)) for each in struct_fields(kind)])
    if _is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_numbers(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_with_numbers(kind.item_type)))
    return kind


def _fill(message: Any, values: dict[str, Any]) -> None:
    fields = message.DESCRIPTOR.fields_by_name
    for name, value in values.items():
        if value is None:
            continue
        each = fields[name]
        if is_map(each):
            _fill_map(getattr(message, name), value, each.message_type.fields_by_name["value"])
        elif is_repeated(each):
            _fill_list(getattr(message, name), value, each)
        elif is_message(each):
            _fill_message(getattr(message, name), value, each.message_type)
        else:
            setattr(message, name, _scalar(value, each))


def _fill_map(target: Any, entries: list[tuple[Any, Any]], each: Any) -> None:
    for key, value in entries:
        if is_message(each):
            _fill_message(target[key], value, each.message_type)
        else:
            target[key] = _scalar(value, each)


def _fill_list(target: Any, values: list[Any], each: Any) -> None:
    for value in values:
        if value is None:
            raise ValueError(f"field {each.name}: a repeated field of Protobuf has no nulls")
        if is_message(each):
            _fill_message(target.add(), value, each.message_type)
        else:
            target.append(_scalar(value, each))


def _fill_message(target: Any, value: Any, message: Any) -> None:
    name = message.full_name
    target.SetInParent()
    if name == TIMESTAMP:
        target.seconds, micros = divmod(value, MICROS)
        target.nanos = micros * 1000
    elif name == DATE:
        _fill_date(target, value)
    elif name in WRAPPERS:
        target.value = _scalar(value, message.fields_by_name["value"])
    elif name in AS_JSON:
        json_format.ParseDict(json.loads(value), target)
    elif message.fields:
        _fill(target, value)


def _fill_date(target: Any, value: date) -> None:
    target.year, target.month, target.day = value.year, value.month, value.day


def _scalar(value: Any, each: Any) -> Any:
    if each.type == FieldDescriptor.TYPE_ENUM:
        known = each.enum_type.values_by_name.get(value)
        if known is None and not str(value).lstrip("-").isdigit():
            raise ValueError(f"field {each.name}: {value!r} is none of the symbols of {each.enum_type.full_name}")
        return int(value) if known is None else known.number
    return int(value) if each.cpp_type in WHOLE and not isinstance(value, bool) else value


WHOLE = {
    FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
}  # fmt: skip
