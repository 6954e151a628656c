"""Cutting a pipeline's SQL into words and statements, with the line of each for what has to be said about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from moldau.spark.pipelines.plan import Location, PipelineError


class Shape(Enum):
    WORD = auto()
    NAME = auto()  # in back quotes
    TEXT = auto()  # in quotes
    SIGN = auto()
    END = auto()


class Token(NamedTuple):
    shape: Shape
    text: str
    line: int
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        return self.shape is Shape.WORD and self.text.lower() in words

    def is_sign(self, sign: str) -> bool:
        return self.shape is Shape.SIGN and self.text == sign


_PIECES = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
      | (?P<name>`(?:[^`]|``)*`)
      | (?P<word>\w+(?:[.\-]\w+)*)  # bootstrap.servers is one word
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)


def tokens_of(source: str, file: str) -> Iterator[Token]:
    line = 1
    for found in _PIECES.finditer(source):
        raw, kind = found[0], found.lastgroup
        if kind == "text":
            yield Token(Shape.TEXT, raw[1:-1].replace(raw[0] * 2, raw[0]), line, *found.span())
        elif kind == "name":
            yield Token(Shape.NAME, raw[1:-1].replace("``", "`"), line, *found.span())
        elif kind == "word":
            yield Token(Shape.WORD, raw, line, *found.span())
        elif kind == "sign":
            if raw in "'\"`" or source.startswith("/*", found.start()):
                what = "comment" if raw == "/" else "quote"
                raise PipelineError(Location(file, line), f"this {what} is not closed")
            yield Token(Shape.SIGN, raw, line, *found.span())
        line += raw.count("\n")


class Statement(NamedTuple):
    tokens: tuple[Token, ...]

    @property
    def line(self) -> int:
        return self.tokens[0].line


def statements_of(source: str, file: str) -> Iterator[Statement]:
    """What stands between semicolons; the last one needs none."""
    gathered: list[Token] = []
    for token in tokens_of(source, file):
        if not token.is_sign(";"):
            gathered.append(token)
        elif gathered:
            yield Statement(tuple(gathered))
            gathered = []
    if gathered:
        yield Statement(tuple(gathered))
