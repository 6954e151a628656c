"""What a configuration key is: its type, default and rule, and how its text becomes a value and a value its text.

The messages of `ConfigError` are the ones Kafka's clients and tools know, because AlterConfigs and CreateTopics send
them back as they are.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

ConfigValue = bool | int | float | str | tuple[str, ...] | None
Check = Callable[[str, ConfigValue], None]

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
DOUBLE_MAX = sys.float_info.max


class ConfigType(IntEnum):
    """The numbers are those of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """The numbers are those of DescribeConfigs."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class ConfigError(Exception):
    """A key whose value can't be used, and what would be allowed."""

    def __init__(self, key: str, value: object, allowed: str) -> None:
        super().__init__(f"Invalid value {value} for configuration {key}: {allowed}")
        self.key = key
        self.value = value
        self.allowed = allowed

    def located(self, source: str) -> Self:
        """The same, with the place that the value came from."""
        self.args = (f"{self.args[0]} ({source})",)
        return self


class UnreadableInput(ConfigError):
    """What was given holds no keys and values at all; the message is the whole line."""

    def __init__(self, where: str, value: object, message: str) -> None:
        super().__init__(where, value, message)
        self.args = (message,)


class ConfigConflict(ConfigError):
    """Values that are right one by one and wrong together; the message names both keys."""

    def __init__(self, key: str, value: object, message: str) -> None:
        super().__init__(key, value, message)
        self.args = (message,)


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker key that gives a topic key its default; hours and minutes become milliseconds by the factor."""

    name: str
    factor: int = 1


@dataclass(frozen=True, slots=True)
class ConfigDef:
    name: str
    type: ConfigType
    default: ConfigValue
    check: Check | None = None
    doc: str = ""
    synonyms: tuple[Synonym, ...] = ()
    internal: bool = False
    repeats: bool = False  # a list in which an item may stand twice; from others the second one is dropped

    @property
    def sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str | None) -> ConfigValue:
        """The typed value of a text, or ConfigError."""
        value = parse_text(self.name, self.type, text)
        if isinstance(value, tuple) and not self.repeats:
            value = tuple(dict.fromkeys(value))
        if self.check is not None:
            self.check(self.name, value)
        return value


_RANGE_OF = {
    ConfigType.INT: (-(2**31), INT_MAX),
    ConfigType.SHORT: (-(2**15), 2**15 - 1),
    ConfigType.LONG: (-(2**63), LONG_MAX),
}
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+\Z")
# Java takes a type suffix and spells out Infinity and NaN; Python would also take inf and 1_000.
_DOUBLE = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|NaN|Infinity))[fFdD]?\Z"
)
_COMMA = re.compile(r"\s*,\s*")


def parse_text(name: str, kind: ConfigType, text: str | None) -> ConfigValue:
    if text is None:
        return None
    trimmed = text.strip()
    if kind is ConfigType.BOOLEAN:
        return _parse_boolean(name, trimmed)
    if kind in _RANGE_OF:
        return _parse_whole_number(name, kind, trimmed)
    if kind is ConfigType.DOUBLE:
        return _parse_double(name, trimmed)
    if kind is ConfigType.LIST:
        return tuple(_COMMA.split(trimmed)) if trimmed else ()
    return trimmed


def _parse_boolean(name: str, text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ConfigError(name, text, "Expected value to be either true or false")
    return lowered == "true"


def _parse_whole_number(name: str, kind: ConfigType, text: str) -> int:
    low, high = _RANGE_OF[kind]
    # Twenty digits are more than any of the types holds; longer texts would only cost time.
    number = int(text) if len(text) <= 20 and _WHOLE_NUMBER.match(text) else None
    if number is None or not low <= number <= high:
        raise ConfigError(name, text, f"Not a number of type {kind.name}")
    return number


def _parse_double(name: str, text: str) -> float:
    match = _DOUBLE.match(text)
    if match is None:
        raise ConfigError(name, text, "Not a number of type DOUBLE")
    return float(match.group(1))


def format_value(value: ConfigValue) -> str | None:
    """The text of a typed value as Java prints it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return format_double(value)
    return str(value)


def format_double(value: float) -> str:
    """Java writes the shortest digits too, but goes over to an exponent at 10^7 and below 10^-3."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        # repr leaves the exponent away in this range.
        return repr(value)
    mantissa, _, exponent = f"{value:e}".partition("e")
    digits = repr(value).partition("e")[0].replace(".", "").replace("-", "").strip("0")
    sign = "-" if mantissa.startswith("-") else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{int(exponent)}"


def at_least(low: float) -> Check:
    def check(name: str, value: ConfigValue) -> None:
        if value is None:
            raise ConfigError(name, "null", "Value must be non-null")
        assert isinstance(value, int | float)
        if value < low:
            raise ConfigError(name, format_value(value), f"Value must be at least {low}")

    return check


def between(low: float, high: float) -> Check:
    lower = at_least(low)

    def check(name: str, value: ConfigValue) -> None:
        lower(name, value)
        assert isinstance(value, int | float)
        if value > high:
            raise ConfigError(name, format_value(value), f"Value must be no more than {high}")

    return check


def one_of(*allowed: str) -> Check:
    def check(name: str, value: ConfigValue) -> None:
        if value not in allowed:
            raise ConfigError(name, "null" if value is None else value, f"String must be one of: {', '.join(allowed)}")

    return check


def one_of_any_case(*allowed: str) -> Check:
    def check(name: str, value: ConfigValue) -> None:
        if not isinstance(value, str) or value.upper() not in allowed:
            shown = "null" if value is None else value
            raise ConfigError(name, shown, f"String must be one of (case insensitive): {', '.join(allowed)}")

    return check


def not_empty(name: str, value: ConfigValue) -> None:
    if value == "":
        raise ConfigError(name, value, "String must be non-empty")


def gzip_level(name: str, value: ConfigValue) -> None:
    if value != -1 and not (isinstance(value, int) and 1 <= value <= 9):
        raise ConfigError(name, value, "Value must be between 1 and 9 or equal to -1")


def list_of(*allowed: str, may_be_empty: bool = False) -> Check:
    """A list of these items, or of any when none are named."""
    item = one_of(*allowed)
    shown = f"[{', '.join(allowed)}]" if allowed else "any non-empty value"

    def check(name: str, value: ConfigValue) -> None:
        assert isinstance(value, tuple)
        if not value and not may_be_empty:
            raise ConfigConflict(name, "", f"Configuration '{name}' must not be empty. Valid values include: {shown}")
        for each in value:
            if not each:
                raise ConfigConflict(name, ",".join(value), f"Configuration '{name}' values must not be empty.")
            if allowed:
                item(name, each)

    return check
