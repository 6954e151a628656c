"""Records as text: formats such as `%T %k: %v\\n`, with the letters that kcat's users know."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

Part = Callable[[Any], bytes]

# One escape, one field, or the plain text between them.
TOKEN = re.compile(r"\\(?:x[0-9a-fA-F]{2}|.)|%.|[^\\%]+", re.DOTALL)
ESCAPES = {"\\n": b"\n", "\\t": b"\t", "\\r": b"\r", "\\0": b"\0", "\\\\": b"\\"}

FIELD_OF = {"timestamp": "%T", "partition": "%p", "offset": "%o", "headers": "%h", "key": "%k", "value": "%v"}

HELP = """\
formats (-f): %t topic  %p partition  %o offset  %T timestamp in ms  %h headers  %k key  %v value
              %K bytes in the key  %V bytes in the value  %% percent sign  \\n \\t \\xHH as in C
"""


def format_of(fields: Sequence[str]) -> str:
    """The format that shows these fields, with tabs between and a line for each record."""
    unknown = [name for name in fields if name not in FIELD_OF]
    if unknown:
        raise ValueError(f"unknown field {unknown[0]!r}; known are {', '.join(FIELD_OF)}")
    return "\\t".join(FIELD_OF[name] for name in fields) + "\\n"


def compile_format(text: str, *, null_marker: bytes) -> Callable[[Any], bytes]:
    """A function from a record to the bytes that show it; ValueError names what the format does not know."""
    tokens = TOKEN.findall(text)
    if "".join(tokens) != text:
        raise ValueError(f"format {text!r} ends in the middle of a field")
    parts = [part_of(token, fields=fields(null_marker)) for token in tokens]
    return lambda message: b"".join([part(message) for part in parts])


def part_of(token: str, *, fields: dict[str, Part]) -> Part:
    if token[0] == "%":
        if token not in fields:
            raise ValueError(f"unknown field {token!r} in the format; known are {' '.join(fields)}")
        return fields[token]
    if token.startswith("\\x"):
        plain = bytes.fromhex(token[2:])
    elif token[0] == "\\":
        if token not in ESCAPES:
            raise ValueError(f"unknown escape {token!r} in the format")
        plain = ESCAPES[token]
    else:
        plain = token.encode()
    return lambda _message: plain


def fields(null_marker: bytes) -> dict[str, Part]:
    def shown(content: bytes | None) -> bytes:
        return null_marker if content is None else content

    def headers(message: Any) -> bytes:
        return b",".join(name.encode() + b"=" + shown(value) for name, value in message.headers() or ())

    def size(content: bytes | None) -> bytes:
        return b"%d" % (-1 if content is None else len(content))

    return {
        "%t": lambda message: message.topic().encode(),
        "%p": lambda message: b"%d" % message.partition(),
        "%o": lambda message: b"%d" % message.offset(),
        "%T": lambda message: b"%d" % message.timestamp()[1],
        "%h": headers,
        "%k": lambda message: shown(message.key()),
        "%v": lambda message: shown(message.value()),
        "%K": lambda message: size(message.key()),
        "%V": lambda message: size(message.value()),
        "%%": lambda _message: b"%",
    }
