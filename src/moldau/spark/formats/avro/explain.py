"""Where the bytes of an Avro record stop making sense: a slow walk, for records that could not be read."""

from __future__ import annotations

import struct
from typing import Any

from moldau.spark.formats.avro.decimals import read_decimal
from moldau.spark.formats.avro.schema import OUR_DECIMAL
from moldau.spark.formats.interface import Misfit

VARINT_BYTES_MAX = 10
FIXED_BYTES = {"float": 4, "double": 8}
RANGES = {"int": 1 << 31, "long": 1 << 63}
REGISTRY_PREFIX_BYTES = 5


def explain(data: bytes, schema: Any) -> Misfit:
    """The first thing that is wrong with the record, in a person's words."""
    walk = _Walk(data)
    try:
        walk.value(schema)
    except Misfit as misfit:
        return _with_hint(misfit, data)
    except RecursionError:
        return Misfit("nested too deeply")
    left = len(data) - walk.at
    if left:
        return _with_hint(Misfit(f"{left} bytes are left behind the end of the record"), data)
    return Misfit("not an Avro record of this schema")


def _with_hint(misfit: Misfit, data: bytes) -> Misfit:
    if len(data) < REGISTRY_PREFIX_BYTES or data[0]:
        return misfit
    schema_id = struct.unpack(">i", data[1:REGISTRY_PREFIX_BYTES])[0]
    hint = f"; if a schema registry is in use, these bytes begin like its schema {schema_id}"
    return Misfit(misfit.message + hint, misfit.path) if 0 < schema_id < 1 << 24 else misfit


class _Walk:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.named: dict[str, Any] = {}

    def take(self, count: int, what: str) -> bytes:
        left = len(self.data) - self.at
        if count < 0:
            raise Misfit(f"expected {what}, got the length {count}")
        if count and not left:
            raise Misfit(f"expected {what}, and the bytes end here")
        if count > left:
            raise Misfit(f"expected {what} of {count} bytes, and {left} are left")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, kind: str) -> int:
        value = shift = 0
        for _ in range(VARINT_BYTES_MAX):
            byte = self.take(1, kind)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        else:
            raise Misfit(f"expected {kind}, got a number that does not end")
        number = (value >> 1) ^ -(value & 1)
        if not -RANGES[kind] <= number < RANGES[kind]:
            raise Misfit(f"expected {kind}, got {number} (out of range)")
        return number

    def value(self, schema: Any) -> None:
        if isinstance(schema, list):
            branch = self.number("long")
            if not 0 <= branch < len(schema):
                raise Misfit(f"expected one of {len(schema)} branches of a union, got number {branch}")
            self.value(schema[branch])
            return
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            self.value(kind)
        elif kind in self.named:
            self.value(self.named[kind])
        elif kind in {"record", "error", "enum", "fixed"}:
            self.named[schema["name"]] = schema
            self.named_value(kind, schema)
        elif kind in {"array", "map"}:
            self.blocks(schema, is_map=kind == "map")
        else:
            self.primitive(kind, schema)

    def primitive(self, kind: str, schema: Any) -> None:
        if kind in RANGES:
            self.number(kind)
        elif kind == "boolean":
            byte = self.take(1, kind)[0]
            if byte > 1:
                raise Misfit(f"expected boolean, got byte {byte}")
        elif kind in FIXED_BYTES:
            self.take(FIXED_BYTES[kind], kind)
        elif kind in {"string", "bytes"}:
            data = self.take(self.number("long"), kind)
            self.content(data, kind, schema)

    def content(self, data: bytes, kind: str, schema: Any) -> None:
        try:
            if kind == "string":
                data.decode()
            elif isinstance(schema, dict) and schema.get("logicalType") == OUR_DECIMAL:
                read_decimal(data, schema)
        except UnicodeDecodeError as error:
            raise Misfit(f"expected string, got bytes that are not UTF-8 at {error.start}") from None
        except ValueError as error:
            raise Misfit(f"expected decimal({schema['precision']},{schema.get('scale', 0)}), got {error}") from None

    def named_value(self, kind: str, schema: Any) -> None:
        if kind == "enum":
            symbol = self.number("int")
            if not 0 <= symbol < len(schema["symbols"]):
                raise Misfit(f"expected one of {len(schema['symbols'])} symbols, got number {symbol}")
        elif kind == "fixed":
            self.content(self.take(int(schema["size"]), kind), kind, schema)
        else:
            for field in schema["fields"]:
                try:
                    self.value(field["type"])
                except Misfit as misfit:
                    raise misfit.inside(f".{field['name']}") from None

    def blocks(self, schema: Any, *, is_map: bool) -> None:
        position = 0
        while count := self.number("long"):
            if count < 0:
                self.number("long")
            for _ in range(abs(count)):
                try:
                    if is_map:
                        self.primitive("string", "string")
                    self.value(schema["values" if is_map else "items"])
                except Misfit as misfit:
                    raise misfit.inside(f"[{position}]") from None
                position += 1
