"""Messages to a typed Arrow column: parsed one by one by compiled code, then taken apart field by field."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.message import DecodeError

from moldau.spark.formats.interface import Decoded, Side, as_binary, decoded_rows
from moldau.spark.formats.protobuf.types import (
    AS_JSON,
    DATE,
    TIMESTAMP,
    WRAPPERS,
    is_map,
    is_message,
    is_repeated,
    struct_type,
)
from moldau.spark.formats.type_names import struct_fields

MICROS = 1_000_000
INT64 = 1 << 63
UNREADABLE = (DecodeError, ValueError, RecursionError)
Messages = Sequence[Any]


class _OutOfRange(ValueError):
    """A time that no column holds."""


@dataclass(frozen=True)
class ProtobufDecoder:
    """Reads every payload as `message`: what a writer added is left out, what it lacks is null or the default."""

    message: Any
    side: Side
    arrow_type: pa.DataType = field(init=False)

    def __post_init__(self) -> None:
        made = struct_type(self.message.DESCRIPTOR, place=f"the schema of {self.side}Format")
        object.__setattr__(self, "arrow_type", made)

    def decode(self, column: pa.BinaryArray) -> Decoded:
        failures: dict[int, str] = {}
        messages = [self._parsed(row, data, failures) for row, data in enumerate(as_binary(column).to_pylist())]
        try:
            values = _struct(messages, self.message.DESCRIPTOR, self.arrow_type)
        except (_OutOfRange, pa.ArrowException):
            self._blank_what_no_column_holds(messages, failures)
            values = _struct(messages, self.message.DESCRIPTOR, self.arrow_type)
        return decoded_rows(values, failures=failures)

    def _parsed(self, row: int, data: bytes | None, failures: dict[int, str]) -> Any:
        if data is None:
            return None
        try:
            return self.message.FromString(data)
        except UNREADABLE as wrong:
            failures[row] = f"{self.side}: no {self.message.DESCRIPTOR.full_name}: {wrong}"
            return None

    def _blank_what_no_column_holds(self, messages: list[Any], failures: dict[int, str]) -> None:
        for row, message in enumerate(messages):
            try:
                _struct([message], self.message.DESCRIPTOR, self.arrow_type)
            except (_OutOfRange, pa.ArrowException) as wrong:
                failures[row] = f"{self.side}: {wrong}"
                messages[row] = None


def _struct(messages: Messages, descriptor: Any, arrow_type: pa.StructType) -> pa.StructArray:
    fields = struct_fields(arrow_type)
    columns = [_column(messages, each, known.type) for each, known in zip(descriptor.fields, fields, strict=True)]
    missing = [message is None for message in messages]
    mask = pa.array(missing, pa.bool_()) if any(missing) else None
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)


def _column(messages: Messages, each: Any, arrow_type: pa.DataType) -> pa.Array:
    name = each.name
    if is_map(each):
        return _maps([None if message is None else getattr(message, name) for message in messages], each, arrow_type)
    if is_repeated(each):
        return _lists([() if message is None else getattr(message, name) for message in messages], each, arrow_type)
    if each.has_presence:
        values = [getattr(m, name) if m is not None and m.HasField(name) else None for m in messages]
    else:
        values = [None if message is None else getattr(message, name) for message in messages]
    return _values(values, each, arrow_type)


def _lists(values: Sequence[Any], each: Any, arrow_type: pa.ListType) -> pa.ListArray:
    offsets, flat = [0], []
    for some in values:
        flat.extend(some)
        offsets.append(len(flat))
    elements = _values(flat, each, arrow_type.value_type)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements, type=arrow_type)


def _maps(values: Sequence[Any], each: Any, arrow_type: pa.MapType) -> pa.MapArray:
    offsets, keys, items = [0], [], []
    for some in values:
        for key in some or ():
            keys.append(key)
            items.append(some[key])
        offsets.append(len(keys))
    of_entry = each.message_type.fields_by_name
    return pa.MapArray.from_arrays(
        pa.array(offsets, pa.int32()),
        _values(keys, of_entry["key"], arrow_type.key_type),
        _values(items, of_entry["value"], arrow_type.item_type),
        type=arrow_type,
    )


def _values(values: Sequence[Any], each: Any, arrow_type: pa.DataType) -> pa.Array:
    """Single values of a field, None where there is none."""
    if not is_message(each):
        if each.enum_type is not None:
            names = each.enum_type.values_by_number
            # Later writers have symbols that the reader's schema lacks: their numbers are kept as text.
            values = [None if value is None else _symbol(names, value) for value in values]
        return pa.array(values, arrow_type)
    message = each.message_type
    read = _reading(message)
    if read is None:
        return _struct(values, message, arrow_type)
    return pa.array([None if value is None else read(value) for value in values], arrow_type)


def _symbol(names: Any, number: int) -> str:
    known = names.get(number)
    return str(number) if known is None else str(known.name)


def _reading(message: Any) -> Callable[[Any], Any] | None:
    """How a message becomes one value; None for one that becomes columns."""
    name = message.full_name
    if name == TIMESTAMP:
        return _micros
    if name == DATE:
        return _date
    if name in WRAPPERS:
        return lambda value: value.value
    if name in AS_JSON:
        return lambda value: json_format.MessageToJson(value, indent=None, ensure_ascii=False)
    return (lambda _: True) if not message.fields else None


def _micros(value: Any) -> int:
    micros = int(value.seconds) * MICROS + int(value.nanos) // 1000
    if not -INT64 <= micros < INT64:
        raise _OutOfRange(f"a time of {value.seconds} seconds since 1970")
    return micros


def _date(value: Any) -> date | None:
    try:
        return date(value.year, value.month, value.day)
    except ValueError:
        raise _OutOfRange(f"no date: year {value.year}, month {value.month}, day {value.day}") from None
