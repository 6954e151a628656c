"""Options in a schema: as written, or as the compiler understood them; printed as Confluent's registry prints them."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/|\#[^\n]*)"""
    r"""|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<word>-?\s*[\w.+]+(?:(?<=[eE])[-+]\d+)?)"""
    r"""|(?P<sign>.)""",
    re.DOTALL,
)
ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
LETTERS = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
ESCAPED = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", "'": "\\'", '"': '\\"',
}  # fmt: skip
DEPTH_MAX = 64


@dataclass(frozen=True, slots=True)
class Text:
    content: bytes


# A word is anything unquoted; pairs are a message in braces.
Value = Text | str | list["Value"] | tuple[tuple[str, "Value"], ...]


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    value: Value


def print_option(option: Option) -> str:
    value = option.value
    if isinstance(value, list):
        return f"{option.name} = {bracketed([_value(item) for item in value])}"
    return f"{option.name} = {_value(value)}"


def bracketed(items: Sequence[str]) -> str:
    """A list of one stays on its line."""
    return f"[{items[0]}]" if len(items) == 1 else f"[\n{_block(items)}]"


def indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.rstrip("\n").split("\n"))


def quoted(content: bytes) -> str:
    """Escaped where Confluent's registry does, and where bytes are no text."""
    try:
        return '"' + "".join(ESCAPED.get(character, character) for character in content.decode()) + '"'
    except UnicodeDecodeError:
        return '"' + "".join(ESCAPED.get(chr(b), chr(b)) if 32 <= b < 127 else f"\\{b:03o}" for b in content) + '"'


def _value(value: Value) -> str:
    if isinstance(value, Text):
        return quoted(value.content)
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return f"[\n{_block([_value(item) for item in value])}]"
    return f"{{\n{_block([f'{key}: {_value(item)}' for key, item in value])}}}"


def _block(items: Sequence[str]) -> str:
    return "".join(indented(item + ("," if number < len(items) - 1 else "")) for number, item in enumerate(items))


# As written


def read_statement(written: str) -> Option:
    """`option name = value;`"""
    tokens = _Tokens(written)
    tokens.take("option")
    return tokens.option()


def read_brackets(written: str) -> list[Option]:
    """`[name = value, ...]`"""
    tokens = _Tokens(written)
    tokens.take("[")
    found = [tokens.option()]
    while tokens.take(","):
        found.append(tokens.option())
    return found


def compact(written: str) -> str:
    """Tokens without the space and the comments between them."""
    return "".join(_tokens(written))


def spaced(written: str) -> str:
    """A statement of words and commas, such as `reserved 1, 3 to 5, "name"`, without its end."""
    out = ""
    for token in _tokens(written):
        if token[0] in "\"'":
            token = quoted(_unescaped(token))
        out += token if not out or token in ",;" else f" {token}"
    return out.rstrip(";")


def _tokens(written: str) -> list[str]:
    return [re.sub(r"\s", "", m[0]) if m["word"] else m[0] for m in TOKEN.finditer(written) if not m["space"]]


def _unescaped(token: str) -> bytes:
    def one(match: re.Match[bytes]) -> bytes:
        octal, hexadecimal, short, long, letter = match.groups()
        if octal or hexadecimal:
            return bytes((int(octal, 8) & 0xFF if octal else int(hexadecimal, 16),))
        if short or long:
            return chr(int(short or long, 16)).encode(errors="replace")
        return LETTERS.get(letter, letter)

    return ESCAPE.sub(one, token[1:-1].encode())


class _Tokens:
    """A compiled option's tokens: whatever stands here has the right form already."""

    def __init__(self, written: str) -> None:
        self._left = _tokens(written)
        self._at = 0

    def peek(self) -> str:
        return self._left[self._at] if self._at < len(self._left) else ""

    def next(self) -> str:
        self._at += 1
        return self._left[self._at - 1] if self._at <= len(self._left) else ""

    def take(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self._at += 1
        return True

    def option(self) -> Option:
        name = ""
        while (token := self.next()) not in ("=", ""):
            name += token
        return Option(name, self.value(DEPTH_MAX))

    def value(self, depth: int) -> Value:
        if depth < 0:
            raise ValueError("an option nests deeper than 64 levels")
        token = self.next()
        if token[:1] in ('"', "'"):
            content = _unescaped(token)
            while self.peek()[:1] in ('"', "'") and self.peek():
                content += _unescaped(self.next())
            return Text(content)
        if token in ("{", "<"):
            return tuple(self.pairs("}" if token == "{" else ">", depth))
        if token == "[":
            items: list[Value] = []
            while not self.take("]") and self.peek():
                items.append(self.value(depth - 1))
                self.take(",")
            return items
        return token + self.next() if token == "-" else token

    def pairs(self, end: str, depth: int) -> Iterator[tuple[str, Value]]:
        while not self.take(end) and self.peek():
            key = self.next()
            if key == "[":
                while not key.endswith("]") and self.peek():
                    key += self.next()
            self.take(":")
            yield key, self.value(depth - 1)
            if not self.take(","):
                self.take(";")


# As the compiler understood them


def interpreted(message: Any) -> list[Option]:
    """The fields that are set of an options message whose class knows its extensions, by name."""
    found: list[Option] = []
    for field, value in message.ListFields():
        if field.name == "uninterpreted_option":
            continue
        name = f"({field.full_name})" if field.is_extension else field.name
        found += [Option(name, _understood(field, item)) for item in _items(field, value)]
    return sorted(found, key=lambda option: option.name.strip("()"))


def _items(field: Any, value: Any) -> Iterable[Any]:
    if not field.is_repeated:
        return (value,)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, content = (field.message_type.fields_by_name[part] for part in ("key", "value"))
        return [_Entry(key, content, name, value[name]) for name in sorted(value)]
    return list(value)


@dataclass(frozen=True, slots=True)
class _Entry:
    key_field: Any
    value_field: Any
    key: Any
    value: Any


def _understood(field: Any, value: Any) -> Value:
    if isinstance(value, _Entry):
        return (
            ("key", _understood(value.key_field, value.key)),
            ("value", _understood(value.value_field, value.value)),
        )
    if field.message_type is not None:
        return tuple(_pairs(value))
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | bytes):
        return Text(value.encode() if isinstance(value, str) else value)
    if isinstance(value, float):
        return print_float(value, single=field.type == field.TYPE_FLOAT)
    return str(value)


def _pairs(message: Any) -> list[tuple[str, Value]]:
    found: list[tuple[str, Value]] = []
    for field, value in message.ListFields():
        items = [_understood(field, item) for item in _items(field, value)]
        name = f"[{field.full_name}]" if field.is_extension else field.name
        found.append((name, items[0] if len(items) == 1 else items))
    return sorted(found, key=lambda pair: pair[0])


def print_float(value: float, *, single: bool) -> str:
    """The fewest digits that are this number."""
    if not math.isfinite(value):
        return str(value)
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if not single:
        return repr(value)
    for digits in range(6, 9):
        short = f"{value:.{digits}g}"
        if struct.unpack("f", struct.pack("f", float(short)))[0] == value:
            return short
    return f"{value:.9g}"
