"""Avro's binary values to its JSON encoding, in which a union's value tells its branch: {"string": "x"}.

Not by fastavro: it does not say which branch a number came from, and its recursion in C ends the process at a value
that is nested a hundred thousand times. Compiled to a function for each type, which is kept with its schema.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from moldau.core import limits
from moldau.schemas.avro.types import (
    Array,
    Enum,
    Fixed,
    Known,
    Map,
    Named,
    Names,
    Primitive,
    Record,
    Type,
    Union,
    Use,
    known,
)
from moldau.schemas.model import InvalidValue, Json

_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_VARINT_BYTES_MAX = 10
_ERROR_CHARS_MAX = 300  # of the fields that an error is in: the innermost tell most

Decode = Callable[["_Input"], Json]


@dataclass(slots=True)
class _Input:
    data: bytes
    at: int = 0
    depth: int = 0
    items: int = 0

    def long(self) -> int:
        result = 0
        for shift in range(0, 7 * _VARINT_BYTES_MAX, 7):
            if self.at >= len(self.data):
                raise InvalidValue(f"it ends inside a number, at byte {self.at}")
            byte = self.data[self.at]
            self.at += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (result >> 1) ^ -(result & 1)
        raise InvalidValue(f"a number of more than {_VARINT_BYTES_MAX} bytes, before byte {self.at}")

    def take(self, size: int) -> bytes:
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise InvalidValue(f"{size} bytes are said to follow byte {self.at}; {len(self.data) - self.at} do")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def count(self, items: int) -> None:
        """An item may take no byte at all, so the size of the data bounds nothing."""
        self.items += items
        if self.items > len(self.data) + limits.AVRO_EMPTY_ITEMS_MAX:
            raise InvalidValue(f"more items than {len(self.data)} bytes hold, at byte {self.at}")


@dataclass(slots=True)
class Decoder:
    """What reads values of one schema."""

    root: Type
    names: Names
    compiled: dict[str, Decode] = field(default_factory=dict)
    entry: Decode | None = None

    def decode(self, payload: bytes) -> Json:
        """Raises InvalidValue."""
        if self.entry is None:
            # Whole before anybody sees it: values are read in several threads.
            self.compiled = {name: self._of_named(type_) for name, type_ in self.names.items()}
            self.entry = self._compile(self.root)
        data = _Input(payload)
        value = self.entry(data)
        if data.at != len(payload):
            raise InvalidValue(f"the value ends at byte {data.at}, and {len(payload) - data.at} more follow")
        return value

    def _compile(self, type_: Type) -> Decode:
        if isinstance(type_, Use | Named):
            return self._named(type_)
        if isinstance(type_, Primitive):
            return _PRIMITIVES[type_.kind]
        if isinstance(type_, Union):
            return self._union(type_)
        return self._array(type_) if isinstance(type_, Array) else self._map(type_)

    def _named(self, type_: Use | Named) -> Decode:
        """Found by its name when a value needs it: types may hold themselves, and each other in long chains."""
        full_name = type_.full_name if isinstance(type_, Use) else type_.heading.full_name

        def decode(data: _Input) -> Json:
            return self.compiled[full_name](data)

        return decode

    def _of_named(self, type_: Named) -> Decode:
        if isinstance(type_, Record):
            return self._record(type_)
        return _enum(type_) if isinstance(type_, Enum) else _fixed(type_)

    def _record(self, record: Record) -> Decode:
        fields = [(each.name, self._compile(each.type)) for each in record.fields]

        def decode(data: _Input) -> Json:
            _enter(data)
            value: dict[str, Json] = {}
            name = ""
            try:
                for name, read in fields:
                    value[name] = read(data)
            except InvalidValue as error:
                raise inside(name, error) from None
            data.depth -= 1
            return value

        return decode

    def _union(self, union: Union) -> Decode:
        branches = [(branch_name(each, self.names), self._compile(each)) for each in union.branches]

        def decode(data: _Input) -> Json:
            index = data.long()
            if not 0 <= index < len(branches):
                raise InvalidValue(f"branch {index} of a union that has {len(branches)}")
            name, read = branches[index]
            return None if name == "null" else {name: read(data)}

        return decode

    def _array(self, array: Array) -> Decode:
        read = self._compile(array.items)

        def decode(data: _Input) -> Json:
            _enter(data)
            items: list[Json] = []
            while count := _block(data):
                items.extend(read(data) for _ in range(count))
            data.depth -= 1
            return items

        return decode

    def _map(self, map_: Map) -> Decode:
        read = self._compile(map_.values)

        def decode(data: _Input) -> Json:
            _enter(data)
            items: dict[str, Json] = {}
            while count := _block(data):
                for _ in range(count):
                    key = _string(data)
                    items[key] = read(data)
            data.depth -= 1
            return items

        return decode


def branch_name(branch: Type, names: Names) -> str:
    """What stands for a union's branch in JSON: a full name, or the word for the type."""
    type_: Known = known(branch, names)
    if isinstance(type_, Named):
        return type_.heading.full_name
    return type_.kind if isinstance(type_, Primitive) else type(type_).__name__.lower()


def inside(name: str, error: InvalidValue) -> InvalidValue:
    """The same error, with the field that it is in before it, unless it is in too many."""
    said = str(error)
    return InvalidValue(f"in {name}: {said}" if len(said) < _ERROR_CHARS_MAX else said)


def _enter(data: _Input) -> None:
    data.depth += 1
    if data.depth > limits.AVRO_DEPTH_MAX:
        raise InvalidValue(f"nested deeper than {limits.AVRO_DEPTH_MAX} levels")


def _block(data: _Input) -> int:
    """The number of items that follow; a negative one has the block's size in bytes after it."""
    count = data.long()
    if count < 0:
        data.long()
        count = -count
    data.count(count)
    return count


def _enum(enum: Enum) -> Decode:
    symbols = enum.symbols

    def decode(data: _Input) -> Json:
        index = data.long()
        if not 0 <= index < len(symbols):
            raise InvalidValue(f"symbol {index} of an enum that has {len(symbols)}")
        return symbols[index]

    return decode


def _fixed(fixed: Fixed) -> Decode:
    size = fixed.size
    return lambda data: data.take(size).decode("latin-1")


def _string(data: _Input) -> str:
    at = data.at
    try:
        return data.take(data.long()).decode()
    except UnicodeDecodeError:
        raise InvalidValue(f"the string at byte {at} is no UTF-8") from None


def _boolean(data: _Input) -> bool:
    byte = data.take(1)[0]
    if byte > 1:
        raise InvalidValue(f"{byte} is no boolean, at byte {data.at - 1}")
    return byte == 1


def _whole(data: _Input, bits: int) -> int:
    value = data.long()
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise InvalidValue(f"{value} has more than {bits} bits, before byte {data.at}")
    return value


def _number(value: float) -> Json:
    """JSON has no word for three of the floating point numbers; Java writes texts."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


_PRIMITIVES: dict[str, Decode] = {
    "null": lambda _: None,
    "boolean": _boolean,
    "int": lambda data: _whole(data, 32),
    "long": lambda data: _whole(data, 64),
    "float": lambda data: _number(_shortest(_FLOAT.unpack(data.take(4))[0])),
    "double": lambda data: _number(_DOUBLE.unpack(data.take(8))[0]),
    "bytes": lambda data: data.take(data.long()).decode("latin-1"),
    "string": _string,
}


def _shortest(value: float) -> float:
    """The number with the fewest digits that is the same float of 32 bits: 0.1 and not 0.10000000149011612."""
    if not math.isfinite(value):
        return value
    for digits in range(6, 10):
        shorter = float(f"{value:.{digits}g}")
        if _FLOAT.unpack(_FLOAT.pack(shorter))[0] == value:
            return shorter
    return value
