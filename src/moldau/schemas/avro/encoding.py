"""Avro's JSON encoding to its binary values.

Strict about types, as Java's JsonDecoder, and lenient in two things: a field with a default may be absent, and a value
of a union may stand without the name of its branch if no other branch could be meant.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from moldau.core import limits
from moldau.schemas.avro.decoding import branch_name, inside
from moldau.schemas.avro.types import (
    Absent,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Names,
    Primitive,
    Record,
    Type,
    Union,
    kind_of,
    known,
)
from moldau.schemas.json_text import write_json
from moldau.schemas.model import InvalidValue, Json

_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
# A level is a record, an array or a map, and mostly a union around it; the rest is for what is tried without a name.
_DEPTH_MAX = 5 * limits.AVRO_DEPTH_MAX // 2
_ATTEMPT_DEPTH = 2
_BITS = {"int": 32, "long": 64}
_NOT_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


@dataclass(slots=True)
class Encoder:
    """One value on its way; `branches` counts how many branches of unions were tried for plain values."""

    names: Names
    out: bytearray
    depth: int = 0
    tries: int = 0

    def write(self, value: Json, type_: Type) -> None:
        """Raises InvalidValue."""
        type_ = known(type_, self.names)
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            raise InvalidValue(f"nested deeper than {limits.AVRO_DEPTH_MAX} levels")
        if isinstance(type_, Union):
            self._union(value, type_)
        elif isinstance(type_, Record):
            self._record(value, type_)
        elif isinstance(type_, Array):
            self._array(value, type_)
        elif isinstance(type_, Map):
            self._map(value, type_)
        elif isinstance(type_, Primitive):
            self._primitive(value, type_.kind)
        else:
            self._named(value, type_)
        self.depth -= 1

    def _record(self, value: Json, record: Record) -> None:
        if not isinstance(value, dict):
            raise _misfit(value, f"record {record.heading.full_name}")
        unknown = value.keys() - {each.name for each in record.fields}
        if unknown:
            raise InvalidValue(f"the record {record.heading.full_name} has no field {write_json(min(unknown))}")
        for each in record.fields:
            try:
                self._field(value, each)
            except InvalidValue as error:
                raise inside(each.name, error) from None

    def _field(self, value: dict[str, Json], field: Field) -> None:
        if field.name in value:
            self.write(value[field.name], field.type)
        elif isinstance(field.default, Absent):
            raise InvalidValue("no value, and the field has no default")
        else:
            self._default(field.default, field.type)

    def _default(self, default: Json, type_: Type) -> None:
        """A default of a union stands without the name of its branch: the first that fits is meant."""
        type_ = known(type_, self.names)
        if isinstance(type_, Union) and default is not None:
            self._first_that_fits(default, type_)
        else:
            self.write(default, type_)

    def _array(self, value: Json, array: Array) -> None:
        if not isinstance(value, list):
            raise _misfit(value, "array")
        if value:
            self._long(len(value))
        for index, item in enumerate(value):
            try:
                self.write(item, array.items)
            except InvalidValue as error:
                raise inside(f"[{index}]", error) from None
        self.out.append(0)

    def _map(self, value: Json, map_: Map) -> None:
        if not isinstance(value, dict):
            raise _misfit(value, "map")
        if value:
            self._long(len(value))
        for key, item in value.items():
            self._bytes(_utf8(key))
            try:
                self.write(item, map_.values)
            except InvalidValue as error:
                raise inside(f"[{write_json(key)}]", error) from None
        self.out.append(0)

    def _union(self, value: Json, union: Union) -> None:
        for index, branch in enumerate(union.branches):
            name = branch_name(branch, self.names)
            if value is None and name == "null":
                return self._long(index)
            if isinstance(value, dict) and len(value) == 1 and name in value and name != "null":
                self._long(index)
                return self.write(value[name], branch)
        return self._plain(value, union)

    def _plain(self, value: Json, union: Union) -> None:
        """Only a branch that no other value of the same look could have meant."""
        written = [each for index, branch in enumerate(union.branches) if (each := self._attempt(value, branch, index))]
        names = ", ".join(branch_name(branch, self.names) for branch in union.branches)
        if len(written) > 1:
            raise InvalidValue(f'{_short(value)} could be several of {names}; say which, as {{"NAME": VALUE}}')
        if not written:
            raise InvalidValue(f"{_short(value)} is none of the union's {names}")
        self.out += written[0]

    def _first_that_fits(self, value: Json, union: Union) -> None:
        for index, branch in enumerate(union.branches):
            if written := self._attempt(value, branch, index):
                self.out += written
                return
        raise InvalidValue(f"the default {_short(value)} is none of the union's branches")

    def _attempt(self, value: Json, branch: Type, index: int) -> bytes | None:
        self.tries += 1
        if self.tries > limits.AVRO_PLAIN_UNION_TRIES_MAX:
            raise InvalidValue('too many values of unions do not say their branch; write {"NAME": VALUE}')
        start = len(self.out)
        depth = self.depth
        self._long(index)
        self.depth += _ATTEMPT_DEPTH
        try:
            self.write(value, branch)
        except InvalidValue:
            return None
        else:
            return bytes(self.out[start:])
        finally:
            self.depth = depth
            del self.out[start:]

    def _named(self, value: Json, type_: Enum | Fixed) -> None:
        if not isinstance(value, str):
            raise _misfit(value, f"{kind_of(type_)} {type_.heading.full_name}")
        if isinstance(type_, Enum):
            if value not in type_.symbols:
                raise InvalidValue(f"{_short(value)} is no symbol of the enum {type_.heading.full_name}")
            return self._long(type_.symbols.index(value))
        raw = _latin1(value)
        if len(raw) != type_.size:
            raise InvalidValue(f"{len(raw)} bytes; the fixed {type_.heading.full_name} has {type_.size}")
        self.out += raw
        return None

    def _primitive(self, value: Json, kind: str) -> None:
        if kind == "null" and value is None:
            return
        if kind == "boolean" and isinstance(value, bool):
            self.out.append(value)
        elif kind == "string" and isinstance(value, str):
            self._bytes(_utf8(value))
        elif kind == "bytes" and isinstance(value, str):
            self._bytes(_latin1(value))
        elif kind in _BITS and isinstance(value, int) and not isinstance(value, bool):
            self._whole(value, _BITS[kind])
        elif kind in ("float", "double") and (number := _number(value)) is not None:
            self.out += _packed(number, _FLOAT if kind == "float" else _DOUBLE)
        else:
            raise _misfit(value, kind)

    def _whole(self, value: int, bits: int) -> None:
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise InvalidValue(f"{_short(value)} has more than {bits} bits")
        self._long(value)

    def _bytes(self, raw: bytes) -> None:
        self._long(len(raw))
        self.out += raw

    def _long(self, value: int) -> None:
        value = (value << 1) ^ (value >> 63)
        while value > 0x7F:
            self.out.append(value & 0x7F | 0x80)
            value >>= 7
        self.out.append(value)


def _number(value: Json) -> float | None:
    if isinstance(value, str):
        return _NOT_FINITE.get(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        raise InvalidValue(f"{_short(value)} is larger than any double") from None


def _packed(number: float, form: struct.Struct) -> bytes:
    try:
        return form.pack(number)
    except OverflowError:
        raise InvalidValue(f"{number} is larger than any float") from None


def _latin1(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as error:
        raise InvalidValue(
            f"the character {text[error.start]!r} stands for no byte: bytes are U+0000 to U+00FF"
        ) from None


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidValue("half a surrogate pair is no character") from None


def _misfit(value: Json, expected: str) -> InvalidValue:
    return InvalidValue(f"{_short(value)} is no {expected}")


def _short(value: Json) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    text = write_json(value)
    return text if len(text) <= 80 else text[:77] + "..."
