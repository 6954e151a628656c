"""One JSON value at a time against a type: the exact rules, and the reason where one is broken.

The decoder reads most records faster than this; whatever it can't read for sure comes here, and this decides.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

from moldau.spark.formats.interface import FormatError, Misfit
from moldau.spark.formats.type_names import spark_name, struct_fields

Check = Callable[[Any], Any]

SHOWN_CHARACTERS_MAX = 40  # a reason is a header of a record and a line in a log: it shows the value, not all of it
INTEGER_DIGITS_MAX = 20
EXPONENT_DIGITS_MAX = 4  # a decimal has 38 digits: a longer exponent can only be a mistake, or meant to take our memory
NOT_FINITE = {
    "NaN": float("nan"),
    **dict.fromkeys(["Infinity", "+Infinity", "INF", "+INF"], float("inf")),
    **dict.fromkeys(["-Infinity", "-INF"], float("-inf")),
}
INTEGER = re.compile(r"-?[0-9]+")
DECIMAL = re.compile(rf"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{{1,{EXPONENT_DIGITS_MAX}}})?")
DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?)?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
EPOCH_DAY = date(1970, 1, 1).toordinal()
SECONDS_A_DAY = 86_400


class Number(str):
    """A number's text: whoever needs an int, a float or a decimal makes it, and none loses digits before that."""

    __slots__ = ()


def parse_json(text: bytes) -> Any:
    """The value with its numbers as text; a Misfit says why it is not JSON."""
    try:
        return json.loads(text.decode(), parse_int=Number, parse_float=Number, parse_constant=Number)
    except UnicodeDecodeError as error:
        raise Misfit(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        if not text.strip():
            raise Misfit("not JSON: it is empty") from None
        raise Misfit(f"not JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise Misfit("not read: its JSON is nested too deeply") from None


def check_for(arrow_type: pa.DataType) -> Check:
    """A function that turns a parsed value (never null) into what `pa.array` takes for this type, or raises Misfit."""
    if arrow_type in SIMPLE_CHECKS:
        return SIMPLE_CHECKS[arrow_type]
    if pa.types.is_integer(arrow_type):
        return _integer_check(arrow_type)
    if pa.types.is_decimal128(arrow_type):
        return _decimal_check(arrow_type)
    if pa.types.is_timestamp(arrow_type):
        return _timestamp_check(zoned=arrow_type.tz is not None)
    if pa.types.is_list(arrow_type):
        return _list_check(arrow_type)
    if pa.types.is_map(arrow_type):
        return _map_check(arrow_type)
    if pa.types.is_struct(arrow_type):
        return _struct_check(arrow_type)
    raise FormatError(f"JSON has no form for {spark_name(arrow_type)}")


def shown(value: Any) -> str:
    """The value as a person would quote it, cut if it is long."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = str(value) if type(value) is Number else json.dumps(value) if not isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN_CHARACTERS_MAX else text[: SHOWN_CHARACTERS_MAX - 3] + "..."


def expected(name: str, value: Any, *, because: str = "") -> Misfit:
    return Misfit(f"expected {name}, got {shown(value)}" + (f" ({because})" if because else ""))


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise expected("boolean", value)


def _string(value: Any) -> str:
    """Text as it is; any other value as its JSON text, as Spark does, so that a field of mixed types has a type."""
    if type(value) is not str:
        return str(value) if type(value) is Number else json_text(value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Misfit("expected string, got half of a surrogate pair, which is no character") from None
    return value


def json_text(value: Any) -> str:
    """A parsed value as compact JSON again, its numbers letter by letter as they came."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{json_text(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    return str(value) if type(value) is Number else json.dumps(value)


def _binary(value: Any) -> bytes:
    if type(value) is not str:
        raise expected("binary as base64 text", value)
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise expected("binary as base64 text", value) from None


def _double(value: Any) -> float:
    if type(value) is str and value in NOT_FINITE:
        return NOT_FINITE[value]
    if type(value) is not Number:
        raise expected("double", value)
    number = float(value)
    if number in (float("inf"), float("-inf")) and value not in NOT_FINITE:
        raise expected("double", value, because="out of range")
    return number


def _float(value: Any) -> float:
    if type(value) is str and value in NOT_FINITE:
        return NOT_FINITE[value]
    if type(value) is not Number:
        raise expected("float", value)
    if value in NOT_FINITE:
        return NOT_FINITE[value]
    # Rounding to a double first and then to a float can miss the nearest float: Arrow rounds once.
    number = float(pa.scalar(str(value)).cast(pa.float32()).as_py())
    if number in (float("inf"), float("-inf")):
        raise expected("float", value, because="out of range")
    return number


def _date(value: Any) -> int:
    match = DATE.fullmatch(value) if type(value) is str else None
    if match is None:
        raise expected("date as 'YYYY-MM-DD'", value)
    return _days(match.group(), value) - EPOCH_DAY


def _days(day: str, value: Any) -> int:
    try:
        return date.fromisoformat(day).toordinal()
    except ValueError:
        raise expected("a day of the calendar", value) from None


SIMPLE_CHECKS: dict[pa.DataType, Check] = {
    pa.bool_(): _boolean,
    pa.string(): _string,
    pa.binary(): _binary,
    pa.float32(): _float,
    pa.float64(): _double,
    pa.date32(): _date,
}


def _integer_check(arrow_type: pa.DataType) -> Check:
    name, limit = spark_name(arrow_type), 1 << (arrow_type.bit_width - 1)

    def check(value: Any) -> int:
        if type(value) is not Number or not INTEGER.fullmatch(value):
            raise expected(name, value)
        number = int(value) if len(value) <= INTEGER_DIGITS_MAX else limit
        if not -limit <= number < limit:
            raise expected(name, value, because="out of range")
        return number

    return check


def _decimal_check(arrow_type: pa.Decimal128Type) -> Check:
    name, digits_before_max = spark_name(arrow_type), arrow_type.precision - arrow_type.scale

    def check(value: Any) -> Decimal:
        if type(value) not in (str, Number) or not DECIMAL.fullmatch(value):
            raise expected(name, value)
        digits, exponent = _significant(value)
        if digits == "0":
            return Decimal(0)
        if -exponent > arrow_type.scale:
            raise expected(name, value, because="too many digits behind the point")
        if len(digits.lstrip("-")) + exponent > digits_before_max:
            raise expected(name, value, because="out of range")
        return Decimal(f"{digits}E{exponent}")

    return check


def _significant(number: str) -> tuple[str, int]:
    """A decimal's digits without zeros at either end, and its exponent: exact for any length."""
    mantissa, _, exponent = number.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("+-0")
    significant = digits.rstrip("0")
    if not significant:
        return "0", 0
    sign = "-" if number.startswith("-") else ""
    return sign + significant, int(exponent or 0) - len(fraction) + len(digits) - len(significant)


def _timestamp_check(*, zoned: bool) -> Check:
    name = "timestamp" if zoned else "timestamp_ntz"

    def check(value: Any) -> int:
        match = TIMESTAMP.fullmatch(value) if type(value) is str else None
        if match is None:
            raise expected(f"{name} as ISO 8601 text", value)
        day, hour, minute, second, fraction, zone = match.groups()
        if zone and not zoned:
            raise expected(name, value, because="it has a time zone")
        clock = [int(part or 0) for part in (hour, minute, second)]
        if clock[0] > 23 or clock[1] > 59 or clock[2] > 59:
            raise expected(f"{name} as ISO 8601 text", value)
        days = _days(day, value) - EPOCH_DAY
        seconds = days * SECONDS_A_DAY + clock[0] * 3600 + clock[1] * 60 + clock[2] - _zone_seconds(zone, value)
        return seconds * 1_000_000 + int((fraction or "0").ljust(6, "0")[:6])

    return check


def _zone_seconds(zone: str | None, value: Any) -> int:
    if zone is None or zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:]) if len(zone) > 3 else 0
    if hours > 23 or minutes > 59:
        raise expected("timestamp with a time zone up to 23:59", value)
    return (-1 if zone[0] == "-" else 1) * (hours * 3600 + minutes * 60)


def _list_check(arrow_type: pa.ListType) -> Check:
    element, name = member_check(arrow_type.value_field), spark_name(arrow_type)

    def check(value: Any) -> list[Any]:
        if type(value) is not list:
            raise expected(name, value)
        checked: list[Any] = []
        try:
            for member in value:
                checked.append(element(member))
        except Misfit as misfit:
            raise misfit.inside(f"[{len(checked)}]") from None
        return checked

    return check


def _map_check(arrow_type: pa.MapType) -> Check:
    if arrow_type.key_type != pa.string():
        raise FormatError(f"JSON has no form for {spark_name(arrow_type)}: names of members are strings")
    item, name = member_check(arrow_type.item_field), spark_name(arrow_type)

    def check(value: Any) -> list[tuple[str, Any]]:
        if type(value) is not dict:
            raise expected(name, value)
        at = ""
        try:
            checked = []
            for at, member in value.items():
                checked.append((_string(at), item(member)))
            return checked
        except Misfit as misfit:
            raise misfit.inside(f"[{shown(at)}]") from None

    return check


def _struct_check(arrow_type: pa.StructType) -> Check:
    fields = [(field.name, member_check(field)) for field in struct_fields(arrow_type)]

    def check(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise expected("an object", value)
        name = ""
        try:
            checked = {}
            for name, member in fields:
                checked[name] = member(value.get(name))
            return checked
        except Misfit as misfit:
            if misfit.message == NULL_REFUSED and not misfit.path and name not in value:
                raise Misfit(MISSING, f".{name}") from None
            raise misfit.inside(f".{name}") from None

    return check


NULL_REFUSED = "null, and the schema says NOT NULL"
MISSING = "missing, and the schema says NOT NULL"


def member_check(field: pa.Field) -> Check:
    """The check of a value that stands inside another and may be null if its field says so."""
    check, nullable = check_for(field.type), field.nullable

    def check_member(value: Any) -> Any:
        if value is not None:
            return check(value)
        if nullable:
            return None
        raise Misfit(NULL_REFUSED)

    return check_member
