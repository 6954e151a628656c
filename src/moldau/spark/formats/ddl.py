"""Spark's DDL for types, `id BIGINT NOT NULL, tags ARRAY<STRING>`, read without a JVM.

Spark parses DDL in the JVM, and a data source's schema is asked for in a Python process that has none.
"""

from __future__ import annotations

import re

import pyarrow as pa

from moldau.spark.formats.interface import FormatError
from moldau.spark.formats.type_names import struct_of

TOKENS = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)+`)|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<word>\w+)|(?P<sign>[<>(),:]))"
)

SIMPLE: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
SUPPORTED = ", ".join([*SIMPLE, "decimal(p,s)", "array<t>", "map<k,v>", "struct<name: t, ...>"])
DECIMAL_DIGITS_MAX = 38


def parse_ddl(text: str, *, place: str) -> pa.DataType:
    """A list of columns becomes a struct; a lone type is itself. `place` names the option in messages."""
    parser = _Parser(tokens=_tokens(text, place=place), place=place)
    if parser.begins_a_type():
        parsed = parser.type_()
        if parser.at_end():
            return parsed
        parser.position = 0
    columns = parser.fields(until="")
    return struct_of(columns, place=place)


def decimal_of(precision: int, scale: int, *, place: str) -> pa.DataType:
    if not (1 <= precision <= DECIMAL_DIGITS_MAX and 0 <= scale <= precision):
        raise FormatError(
            f"{place}: decimal({precision},{scale}) does not exist; 1 to {DECIMAL_DIGITS_MAX} digits, "
            "0 to all of them behind the point"
        )
    return pa.decimal128(precision, scale)


def _tokens(text: str, *, place: str) -> list[str]:
    tokens, at = [], 0
    while text[at:].strip():
        match = TOKENS.match(text, at)
        if match is None:
            raise FormatError(
                f"{place}: {text[at:].strip()[:20]!r} is not understood at character {at + 1} of {text!r}"
            )
        tokens.append(match.group().strip())
        at = match.end()
    return tokens


class _Parser:
    """Recursive descent over the tokens; '' stands for the end."""

    def __init__(self, *, tokens: list[str], place: str) -> None:
        self.tokens = tokens
        self.place = place
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.position += 1
        return token

    def at_end(self) -> bool:
        return self.peek() == ""

    def expect(self, sign: str) -> None:
        token = self.take()
        if token != sign:
            raise FormatError(f"{self.place}: expected {sign!r}, found {token or 'the end'!r}")

    def begins_a_type(self) -> bool:
        """`array<int>` and `int` are types; in `array int` and `a: int` the first word is a column's name."""
        after = self.tokens[1] if len(self.tokens) > 1 else ""
        return after in {"", "<", "("}

    def type_(self) -> pa.DataType:
        word = self.take()
        name = word.lower()
        nested = {"array": self.array, "map": self.map_, "struct": self.struct}
        if name in nested:
            self.expect("<")
            return nested[name]()
        if name in {"decimal", "dec", "numeric"}:
            return self.decimal()
        if name in {"char", "varchar"}:
            self.sizes()
            return pa.string()
        if name not in SIMPLE:
            raise FormatError(f"{self.place}: type {word or 'missing at the end'!r} is not one of {SUPPORTED}")
        return SIMPLE[name]

    def array(self) -> pa.DataType:
        element = self.type_()
        self.expect(">")
        return pa.list_(element)

    def map_(self) -> pa.DataType:
        key = self.type_()
        self.expect(",")
        item = self.type_()
        self.expect(">")
        return pa.map_(key, item)

    def struct(self) -> pa.DataType:
        fields = self.fields(until=">")
        self.expect(">")
        return struct_of(fields, place=self.place)

    def decimal(self) -> pa.DataType:
        sizes = self.sizes() if self.peek() == "(" else []
        precision, scale = (*sizes, 10, 0)[:2] if not sizes else (sizes[0], sizes[1] if len(sizes) > 1 else 0)
        return decimal_of(precision, scale, place=self.place)

    def sizes(self) -> list[int]:
        self.expect("(")
        sizes = []
        while True:
            token = self.take()
            if not token.isdecimal():
                raise FormatError(f"{self.place}: expected a number, found {token or 'the end'!r}")
            sizes.append(int(token))
            if self.peek() != ",":
                break
            self.take()
        self.expect(")")
        return sizes

    def fields(self, *, until: str) -> list[pa.Field]:
        fields: list[pa.Field] = []
        while self.peek() != until:
            if fields:
                self.expect(",")
            fields.append(self.field())
        return fields

    def field(self) -> pa.Field:
        token = self.take()
        if not token or token in "<>(),:" or token[0] in "'\"":
            raise FormatError(f"{self.place}: expected a column's name, found {token or 'the end'!r}")
        name = token[1:-1].replace("``", "`") if token.startswith("`") else token
        if self.peek() == ":":
            self.take()
        field_type = self.type_()
        nullable = True
        if self.peek().lower() == "not":
            self.take()
            if self.take().lower() != "null":
                raise FormatError(f"{self.place}: column {name}: NOT must be followed by NULL")
            nullable = False
        if self.peek().lower() == "comment":
            self.take()
            while self.peek()[:1] in ("'", '"'):  # texts side by side are one text
                self.take()
        return pa.field(name, field_type, nullable=nullable)
