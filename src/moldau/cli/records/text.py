"""Records as text: formats such as `%T %k: %v\\n`, with the letters that kcat's users know, and `{…}` behind them."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from moldau.client.fetched import FetchedRecord

Part = Callable[[FetchedRecord], bytes]

# One escape, one field, or the plain text between them.
TOKEN = re.compile(r"\\(?:x[0-9a-fA-F]{2}|.)|%.|[^\\%]+", re.DOTALL)
ESCAPES = {"\\n": b"\n", "\\t": b"\t", "\\r": b"\r", "\\0": b"\0", "\\\\": b"\\"}
PLAIN = {"%%": b"%", "%{": b"{", "%}": b"}"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NUMBER_BITS = {"8": 1, "16": 2, "32": 4, "64": 8}

FIELD_OF = {"timestamp": "%T", "partition": "%p", "offset": "%o", "headers": "%h", "key": "%k", "value": "%v"}

HELP = """\
formats (-f): %t topic  %p partition  %o offset  %e leader epoch  %T timestamp in ms  %h headers  %H how many headers
              %k key  %v value  %K bytes in the key  %V bytes in the value  %% percent sign  %{ %} braces
              \\n \\t \\r \\0 \\\\ \\xHH as in C
  and behind them in braces:
              %k{hex} %v{base64}               bytes as text
              %T{%F %T} or %T{iso}             a time, as of strftime, in UTC; %d is the same as %T
              %h{%k=%v }                       once for each header, whose name and value are %k and %v
              %o{hex} %V{big32} %K{little16}   numbers in hexadecimal, or as so many bits
"""


def format_of(fields: Sequence[str]) -> str:
    """The format that shows these fields, with tabs between and a line for each record."""
    unknown = [name for name in fields if name not in FIELD_OF]
    if unknown:
        raise ValueError(f"unknown field {unknown[0]!r}; known are {', '.join(FIELD_OF)}")
    return "\\t".join(FIELD_OF[name] for name in fields) + "\\n"


def compile_format(text: str, *, null_marker: bytes) -> Part:
    """A function from a record to the bytes that show it; ValueError names what the format does not know."""
    parts = list(_compiled(text, _fields(null_marker)))
    return lambda record: b"".join([part(record) for part in parts])


def _compiled(text: str, fields: dict[str, Callable[[str | None], Callable[[Any], bytes]]]) -> Any:
    at = 0
    while at < len(text):
        token = TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"format {text!r} ends in the middle of a field")
        at = token.end()
        if token[0][0] != "%" or token[0] in PLAIN:
            yield _plain(token[0])
            continue
        if token[0] not in fields:
            raise ValueError(f"unknown field {token[0]!r} in the format; known are {' '.join(fields)} %%")
        modifier = None
        if text.startswith("{", at):
            modifier, at = _braced(text, at)
        yield fields[token[0]](modifier)


def _braced(text: str, at: int) -> tuple[str, int]:
    """What stands in the braces that open here, and where the text goes on; `%{` and `%}` in them are none."""
    depth, end = 0, at
    while end < len(text):
        if text[end] == "%":
            end += 2
            continue
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
        if depth == 0:
            return text[at + 1 : end - 1], end
    raise ValueError(f"format {text!r} ends inside of braces")


def _plain(token: str) -> Part:
    if token in PLAIN:
        plain = PLAIN[token]
    elif token.startswith("\\x"):
        plain = bytes.fromhex(token[2:])
    elif token[0] == "\\":
        if token not in ESCAPES:
            raise ValueError(f"unknown escape {token!r} in the format")
        plain = ESCAPES[token]
    else:
        plain = token.encode()
    return lambda _record: plain


def _fields(null_marker: bytes) -> dict[str, Callable[[str | None], Part]]:
    def content(get: Callable[[Any], bytes | None]) -> Callable[[str | None], Part]:
        return lambda modifier: _content(get, modifier, null_marker)

    def size(get: Callable[[Any], bytes | None]) -> Callable[[str | None], Part]:
        def measured(record: Any) -> int:
            found = get(record)
            return -1 if found is None else len(found)

        return lambda modifier: _number(measured, modifier)

    def number(get: Callable[[Any], int]) -> Callable[[str | None], Part]:
        return lambda modifier: _number(get, modifier)

    return {
        "%t": content(lambda record: record.topic.encode()),
        "%p": number(lambda record: record.partition),
        "%o": number(lambda record: record.offset),
        "%e": number(lambda record: record.leader_epoch),
        "%T": _time,
        "%d": _time,
        "%h": lambda modifier: _headers(modifier, null_marker),
        "%H": number(lambda record: len(record.headers)),
        "%k": content(lambda record: record.key),
        "%v": content(lambda record: record.value),
        "%K": size(lambda record: record.key),
        "%V": size(lambda record: record.value),
    }


def _content(get: Callable[[Any], bytes | None], modifier: str | None, null_marker: bytes) -> Part:
    shown: dict[str | None, Callable[[bytes], bytes]] = {
        None: lambda found: found,
        "hex": lambda found: found.hex().encode(),
        "base64": b64encode,
    }
    if modifier not in shown:
        raise ValueError(f"unknown form {{{modifier}}} of a content; known are {{hex}} and {{base64}}")
    show = shown[modifier]

    def part(record: Any) -> bytes:
        found = get(record)
        return null_marker if found is None else show(found)

    return part


def _number(get: Callable[[Any], int], modifier: str | None) -> Part:
    if modifier is None:
        return lambda record: b"%d" % get(record)
    if modifier == "hex":
        return lambda record: b"%x" % get(record)
    order = re.fullmatch(r"(big|little)(8|16|32|64)", modifier)
    if order is None:
        raise ValueError(
            f"unknown form {{{modifier}}} of a number; known are {{hex}}, {{big32}}, {{little64}} and such"
        )
    size_bytes = NUMBER_BITS[order[2]]
    mask = (1 << 8 * size_bytes) - 1
    return lambda record: (get(record) & mask).to_bytes(size_bytes, "little" if order[1] == "little" else "big")


def _time(modifier: str | None) -> Part:
    if modifier is None:
        return lambda record: b"%d" % record.timestamp_ms
    if not modifier:
        raise ValueError("a time in braces needs a form, such as %T{%F %T} or %T{iso}")

    def part(record: FetchedRecord) -> bytes:
        try:
            moment = EPOCH + timedelta(milliseconds=record.timestamp_ms)
        except OverflowError:  # a year that a calendar does not have
            return b"%d" % record.timestamp_ms
        text = moment.isoformat(timespec="milliseconds") if modifier == "iso" else moment.strftime(modifier)
        return text.encode()

    return part


def _headers(modifier: str | None, null_marker: bytes) -> Part:
    if modifier is None:
        return lambda record: b",".join(
            name + b"=" + (null_marker if value is None else value) for name, value in record.headers
        )
    fields: dict[str, Callable[[str | None], Callable[[Any], bytes]]] = {
        "%k": lambda form: _content(lambda header: header[0], form, null_marker),
        "%v": lambda form: _content(lambda header: header[1], form, null_marker),
        "%K": lambda form: _number(lambda header: len(header[0]), form),
        "%V": lambda form: _number(lambda header: -1 if header[1] is None else len(header[1]), form),
    }
    parts = list(_compiled(modifier, fields))
    return lambda record: b"".join(part(header) for header in record.headers for part in parts)
