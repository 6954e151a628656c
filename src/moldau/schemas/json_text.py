"""JSON as schemas and values are written in: read within limits, written as Jackson writes it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import NoReturn

from moldau.core import limits
from moldau.schemas.model import InvalidSchema, InvalidValue, Json

# What has no end goes to the end of the text: if it were no match, each of its characters would be looked at as another
# beginning, which takes hours. Strings first: what looks like a comment inside one is none.
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"?'
_STRINGS_AND_COMMENTS = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?P<end>\*/|\Z)", re.DOTALL)
_STRINGS_AND_BRACKETS = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)


def read_schema_text(text: str, *, comments: bool = False) -> Json:
    """The JSON of a schema. Raises InvalidSchema for what is too large, too deep or no JSON.

    Avro's own parser allows comments of Java's two kinds, and so does this one where they are asked for.
    """
    _check_size(text)
    if comments and "/" in text:
        text = _STRINGS_AND_COMMENTS.sub(_without_comment, text)
    try:
        return _read(text)
    except ValueError as error:
        raise InvalidSchema(str(error)) from None


def _without_comment(match: re.Match[str]) -> str:
    if match["end"] == "":
        raise InvalidSchema("no JSON: a comment has no end")
    return match[0] if match[0].startswith('"') else " "


def objects(document: Json) -> Iterator[dict[str, Json]]:
    """All of them, however deep."""
    waiting = [document]
    while waiting:
        found = waiting.pop()
        if isinstance(found, list):
            waiting.extend(found)
        elif isinstance(found, dict):
            waiting.extend(found.values())
            yield found


def read_value(payload: bytes) -> Json:
    """The JSON of a value. Raises InvalidValue."""
    try:
        return _read(payload.decode())
    except UnicodeDecodeError as error:
        raise InvalidValue(f"no UTF-8 at byte {error.start}") from None
    except ValueError as error:
        raise InvalidValue(str(error)) from None


def write_json(value: Json) -> str:
    """Compact JSON with the keys in their order and characters as they are, as Jackson writes it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{quoted(key)}:{write_json(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write_json, value)) + "]"
    return _scalar(value)


def sorted_keys(value: Json) -> Json:
    """The same value with every object's keys in the order of their characters."""
    if isinstance(value, dict):
        return {key: sorted_keys(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [sorted_keys(item) for item in value]
    return value


def _scalar(value: bool | int | float | str | None) -> str:
    if isinstance(value, str):
        return quoted(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return java_double(value) if isinstance(value, float) else str(value)


def quoted(text: str) -> str:
    """A JSON string: only what must be escaped is."""
    return json.dumps(text, ensure_ascii=False)


def java_double(value: float) -> str:
    """A number as Java's Double.toString has it: 1.0E10 where Python has 10000000000.0."""
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = _decimal(value)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _decimal(value: float) -> tuple[str, str, int]:
    """Sign, shortest digits without zeros around them, and the exponent of the first one."""
    mantissa, _, exponent = format(abs(value), ".17e").partition("e")
    shortest = repr(abs(value))
    digits = shortest.partition("e")[0].replace(".", "").strip("0")
    return "-" if value < 0 else "", digits or mantissa[0], int(exponent)


def _check_size(text: str) -> None:
    if len(text) > limits.SCHEMA_CHARS_MAX:
        raise InvalidSchema(f"{len(text)} characters; at most {limits.SCHEMA_CHARS_MAX} are allowed")


def _read(text: str) -> Json:
    """Raises ValueError: no JSON, nested too deep, a number with too many digits, half a surrogate pair."""
    _check_depth(text)
    try:
        value: Json = json.loads(text, parse_constant=_refuse_constant, parse_int=_int, parse_float=_float)
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair is no character") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None
    if "\\u" in text:
        _check_surrogates(value)
    return value


def _check_depth(text: str) -> None:
    """Before anything is parsed: parsers recurse, and their stack is not the sender's to use up."""
    depth = 0
    for match in _STRINGS_AND_BRACKETS.finditer(text):
        token = match[0]
        if token in "[{":
            depth += 1
            if depth > limits.JSON_DEPTH_MAX:
                raise ValueError(f"nested deeper than {limits.JSON_DEPTH_MAX} levels")
        elif token in "]}":
            depth -= 1


def _check_surrogates(value: Json) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair is no character") from None


def _int(digits: str) -> int:
    if len(digits) > limits.JSON_DIGITS_MAX:
        raise ValueError(f"a number of {len(digits)} digits; at most {limits.JSON_DIGITS_MAX} are allowed")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits[:40]} is larger than any number")
    return value


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
