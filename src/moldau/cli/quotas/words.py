"""What a user types and reads: entities such as `user=alice client-id=`, and values such as `1MiB`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from moldau.cli.failures import UsageError

USER, CLIENT_ID, IP = "user", "client-id", "ip"
TYPES = (USER, CLIENT_ID, IP)
BYTE_RATES = ("producer_byte_rate", "consumer_byte_rate")
PERCENTAGE = "request_percentage"
KEYS = (*BYTE_RATES, PERCENTAGE, "controller_mutation_rate", "connection_creation_rate")

Entity = Mapping[str, str | None]
"""The name of each type; None is the default of that type."""

# The longest suffixes first, for "B" ends all of them.
_UNITS: Mapping[str, int] = MappingProxyType(
    {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "B": 1}
)
_SHOWN = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def entity_words(words: Iterable[str]) -> tuple[dict[str, str | None], list[str]]:
    """The entity that the words name, and the words that are none of it."""
    entity: dict[str, str | None] = {}
    others = []
    for word in words:
        kind, equals, name = word.partition("=")
        if kind not in TYPES:
            others.append(word)
        elif not equals:
            raise UsageError(f"{word}: expected {kind}=NAME, or {kind}= for the default")
        elif kind in entity:
            raise UsageError(f"{kind} is named twice")
        else:
            entity[kind] = name or None
    if IP in entity and len(entity) > 1:
        raise UsageError("an ip has quotas of its own, and none together with a user or a client-id")
    return entity, others


def shown_entity(entity: Entity) -> str:
    return " ".join(f"{kind}={entity[kind] or ''}" for kind in TYPES if kind in entity)


def known_key(key: str) -> str:
    if key not in KEYS:
        raise UsageError(f"{key!r} is no quota; there are {', '.join(KEYS)}, and entities are {', '.join(TYPES)}")
    return key


def parsed_value(key: str, text: str) -> float:
    unit = next((each for each in _UNITS if text.endswith(each)), "") if key in BYTE_RATES else ""
    number = text.removesuffix("%") if key == PERCENTAGE else text.removesuffix(unit)
    try:
        value = float(number) * (_UNITS[unit] if unit else 1)
    except ValueError:
        example = "1MiB" if key in BYTE_RATES else "10"
        raise UsageError(f"{key}={text}: expected a number, such as {example}") from None
    if not 0 < value < float("inf"):
        raise UsageError(f"{key}={text}: expected more than 0; delete a quota to have no limit")
    return value


def shown_value(key: str, value: float) -> str:
    if key in BYTE_RATES:
        for unit, size in _SHOWN:
            if value >= size and value % size == 0:
                return f"{value / size:.0f}{unit}"
    return f"{value:.0f}" if value == int(value) else f"{value!r}"


def shown_values(values: Mapping[str, float]) -> str:
    return " ".join(f"{key}={shown_value(key, value)}" for key, value in sorted(values.items()))
