"""Messages of Protobuf as Arrow types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor

from moldau.spark.formats.interface import FormatError
from moldau.spark.formats.type_names import struct_of

INSTANT = pa.timestamp("us", "UTC")
UNSIGNED_64 = pa.decimal128(20, 0)  # the largest of them is beyond BIGINT
SCALARS: dict[int, pa.DataType] = {
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_UINT32: pa.int64(),
    FieldDescriptor.TYPE_FIXED32: pa.int64(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_UINT64: UNSIGNED_64,
    FieldDescriptor.TYPE_FIXED64: UNSIGNED_64,
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_STRING: pa.string(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
    FieldDescriptor.TYPE_ENUM: pa.string(),
}
TIMESTAMP = "google.protobuf.Timestamp"
DATE = "google.type.Date"
WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
AS_JSON = {f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue")}


def is_message(field: Any) -> bool:
    return bool(field.type in (FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_GROUP))


def is_map(field: Any) -> bool:
    return is_message(field) and bool(field.message_type.GetOptions().map_entry)


def is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def struct_type(message: Any, *, place: str, inside: tuple[str, ...] = ()) -> pa.StructType:
    """A column may always be null: a field that a writer left out, or whose writer did not know of it."""
    if message.full_name in inside:
        raise FormatError(f"{place}: {message.full_name} holds itself, and a column's type can't")
    inside = (*inside, message.full_name)
    fields = [pa.field(field.name, field_type(field, place=place, inside=inside)) for field in message.fields]
    return struct_of(fields, place=f"{place}: {message.full_name}")


def field_type(field: Any, *, place: str, inside: tuple[str, ...] = ()) -> pa.DataType:
    if is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return pa.map_(SCALARS[key.type], single_type(value, place=place, inside=inside))
    single = single_type(field, place=place, inside=inside)
    return pa.list_(pa.field("item", single, nullable=False)) if is_repeated(field) else single


def single_type(field: Any, *, place: str, inside: tuple[str, ...] = ()) -> pa.DataType:
    """Of one value of the field, if there may be several."""
    if not is_message(field):
        return SCALARS[field.type]
    message = field.message_type
    if message.full_name == TIMESTAMP:
        return INSTANT
    if message.full_name == DATE:
        return pa.date32()
    if message.full_name in WRAPPERS:
        return SCALARS[message.fields_by_name["value"].type]
    if message.full_name in AS_JSON:
        return pa.string()
    if not message.fields:
        return pa.bool_()  # an empty message says only that it is there
    return struct_type(message, place=place, inside=inside)
