"""Messages as the JSON text that Apache Kafka's converters and its JSON library make of them."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from moldau.core.ids import format_uuid
from moldau.wire.schema import Field, Kind, fields_of

PLAIN_FROM, PLAIN_BELOW = 1e-3, 1e7  # where Java writes a double without an exponent

_WORD = re.compile(r"_(.)")
_ESCAPE = re.compile(r"\\u00([0-9a-f]{2})")


def as_json(message: Struct, version: int) -> dict[str, Any]:
    """Fields that this version has, tagged ones only if they say something, in the order of the schema."""
    found: dict[str, Any] = {}
    for field in fields_of(type(message)):
        if version not in field.versions:
            continue
        value = getattr(message, field.name)
        if field.tag is None or value != field.default():
            found[camel_case(field.name)] = _value(value, field, version)
    return found


def _value(value: Any, field: Field, version: int) -> Any:
    if value is None:
        return None
    if field.is_array:
        return [_element(each, field, version) for each in value]
    return _element(value, field, version)


def _element(value: Any, field: Field, version: int) -> Any:
    if isinstance(value, Struct):
        return as_json(value, version)
    if field.type is Kind.UUID:
        return format_uuid(value)
    return b64encode(value).decode() if field.type is Kind.BYTES else value


@cache
def camel_case(name: str) -> str:
    return _WORD.sub(lambda found: found[1].upper(), name)


def json_text(value: Any) -> str:
    """Without spaces, text as it is, and numbers as Java writes them."""
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{json_text(name)}:{json_text(each)}' for name, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{','.join(json_text(each) for each in value)}]"
    if isinstance(value, float):
        return _double(value)
    return _ESCAPE.sub(lambda found: rf"\u00{found[1].upper()}", json.dumps(value, ensure_ascii=False))


def _double(value: float) -> str:
    if value == 0 or PLAIN_FROM <= abs(value) < PLAIN_BELOW:
        return repr(value)
    digits, _, exponent = f"{value!r}".partition("e")
    if not exponent:  # Python writes it without one for longer
        digits, _, exponent = f"{value:.16e}".partition("e")
        digits = next(
            (
                short
                for n in range(1, 17)
                if float(f"{(short := f'{value:.{n}e}'.partition('e')[0])}e{exponent}") == value
            ),
            digits,
        )
    return f"{digits if '.' in digits else f'{digits}.0'}E{int(exponent)}"
