"""Spark's DDL for types, `id BIGINT NOT NULL, tags ARRAY<STRING>`, read without a JVM.

Spark's own parser is in the JVM, and reached through a session. Processes of a data source have no session, neither
where its schema is asked for nor in tasks. A schema can be given to Spark as text there, but tasks would get it back
without its NOT NULL, which decides what fits. Where there is a session, in pipelines and `moldau sql`, Spark's parser
reads the text (`pipelines/running/frames/schemas.py`); a test holds the two against each other.
"""

from __future__ import annotations

import re

import pyarrow as pa

from moldau.spark.formats.interface import FormatError
from moldau.spark.formats.type_names import struct_of

TOKEN = re.compile(r"`(?:[^`]|``)+`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\w+|[<>(),:]", re.DOTALL)
NUMBER = re.compile(r"\d+(?:e\d+)?(?:bd|[lsydf])?", re.IGNORECASE)  # of any type; no name of a column as it stands
BETWEEN = re.compile(r"(?:\s|--[^\n]*|/\*.*?\*/)*", re.DOTALL)

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
DECIMAL_DIGITS = 10  # where a decimal says nothing
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
    tokens, at = [], _after_blanks(text, 0)
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise FormatError(f"{place}: {text[at : at + 20]!r} is not understood at character {at + 1} of {text!r}")
        tokens.append(match.group())
        at = _after_blanks(text, match.end())
    return tokens


def _after_blanks(text: str, at: int) -> int:
    blanks = BETWEEN.match(text, at)
    return blanks.end() if blanks else at


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
        if name in {"char", "character", "varchar"}:
            self.sizes(at_most=1)
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
        sizes = self.sizes(at_most=2) if self.peek() == "(" else [DECIMAL_DIGITS]
        return decimal_of(sizes[0], sizes[1] if len(sizes) > 1 else 0, place=self.place)

    def sizes(self, *, at_most: int) -> list[int]:
        self.expect("(")
        sizes = [self.number()]
        while self.peek() == "," and len(sizes) < at_most:
            self.take()
            sizes.append(self.number())
        self.expect(")")
        return sizes

    def number(self) -> int:
        token = self.take()
        if not token.isdecimal():
            raise FormatError(f"{self.place}: expected a number, found {token or 'the end'!r}")
        return int(token)

    def fields(self, *, until: str) -> list[pa.Field]:
        fields: list[pa.Field] = []
        while self.peek() != until:
            if fields:
                self.expect(",")
            fields.append(self.field())
        return fields

    def field(self) -> pa.Field:
        token = self.take()
        if not token or token in "<>(),:" or token[0] in "'\"" or NUMBER.fullmatch(token):
            raise FormatError(f"{self.place}: expected a column's name, found {token or 'the end'!r}")
        name = token[1:-1].replace("``", "`") if token.startswith("`") else token
        if name == token and not token.isascii():
            raise FormatError(f"{self.place}: the name {token} has to be in backticks")
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
            self.comment(name)
        return pa.field(name, field_type, nullable=nullable)

    def comment(self, name: str) -> None:
        if self.peek()[:1] not in ("'", '"'):
            raise FormatError(f"{self.place}: column {name}: COMMENT must be followed by a text in quotes")
        while self.peek()[:1] in ("'", '"'):  # texts side by side are one text
            self.take()
