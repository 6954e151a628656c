"""The configuration of a group: every key of Kafka 4.3, and the bounds that the broker sets to them.

A group's key `consumer.session.timeout.ms` has its default in the broker's `group.consumer.session.timeout.ms`, and its
bounds in `group.consumer.min.session.timeout.ms` and `group.consumer.max.session.timeout.ms`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from moldau.core.config.definitions import (
    Check,
    ConfigConflict,
    ConfigDef,
    ConfigError,
    ConfigType,
    ConfigValue,
    Synonym,
    at_least,
    one_of,
)

if TYPE_CHECKING:
    from moldau.core.config.broker import BrokerConfig

BOOLEAN, STRING, INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT

_DURATION = re.compile(
    r"P(?=[0-9T])(?:[0-9]+D)?(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:[.,][0-9]{0,9})?S)?)?\Z"
)


def _offset_reset(name: str, value: ConfigValue) -> None:
    kind, colon, duration = str(value).partition(":")
    if value in ("earliest", "latest") or (kind == "by_duration" and colon and _DURATION.match(duration.upper())):
        return
    allowed = (
        f"Invalid value `{value}` for configuration {name}. The value must be either 'earliest', 'latest' or of the "
        "format 'by_duration:<PnDTnHnMn.nS>'."
    )
    raise ConfigError(name, value, allowed)


def _bounded(name: str, default: int, low: int, doc: str) -> ConfigDef:
    """A number that the broker has a default of its own for."""
    return ConfigDef(name, INT, default, at_least(low), doc, synonyms=(Synonym(f"group.{name}"),))


def _plain(name: str, kind: ConfigType, default: ConfigValue, check: Check | None, doc: str) -> ConfigDef:
    return ConfigDef(name, kind, default, check, doc)


_SESSION = "How long a member may be silent before it is taken for dead."
_HEARTBEAT = "How often members are asked to send a heartbeat."
_ASSIGNMENT = "The least time between two assignments of the group."

_DEFINITIONS = (
    _bounded("consumer.session.timeout.ms", 45_000, 1, _SESSION),
    _bounded("consumer.heartbeat.interval.ms", 5_000, 1, _HEARTBEAT),
    _bounded("consumer.assignment.interval.ms", 1_000, 0, _ASSIGNMENT),
    _bounded("share.session.timeout.ms", 45_000, 1, _SESSION),
    _bounded("share.heartbeat.interval.ms", 5_000, 1, _HEARTBEAT),
    _bounded("share.record.lock.duration.ms", 30_000, 1_000, "How long a record is locked for the member that got it."),
    _bounded("share.delivery.count.limit", 5, 2, "How often a record is delivered at most."),
    _bounded("share.partition.max.record.locks", 2_000, 100, "How many records of a partition may be locked at once."),
    _plain("share.auto.offset.reset", STRING, "latest", _offset_reset, "Where the group begins to read a partition."),
    _plain(
        "share.isolation.level",
        STRING,
        "read_uncommitted",
        one_of("read_committed", "read_uncommitted"),
        "Whether records of transactions that are open or aborted are delivered.",
    ),
    _plain("share.renew.acknowledge.enable", BOOLEAN, True, None, "Whether a member may extend the lock of a record."),
    _bounded("share.assignment.interval.ms", 1_000, 0, _ASSIGNMENT),
    _bounded("streams.session.timeout.ms", 45_000, 1, _SESSION),
    _bounded("streams.heartbeat.interval.ms", 5_000, 1, _HEARTBEAT),
    _bounded("streams.num.standby.replicas", 0, 0, "How many members keep a copy of a task's state."),
    _bounded("streams.initial.rebalance.delay.ms", 3_000, 0, "How long a new group waits for more members."),
    _bounded("streams.assignment.interval.ms", 1_000, 0, _ASSIGNMENT),
)

GROUP_CONFIGS: Mapping[str, ConfigDef] = MappingProxyType({each.name: each for each in _DEFINITIONS})

# In the order in which a group's values are looked at, so that of several mistakes the same one is told as by Kafka.
_BOUNDED = (
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "consumer.assignment.interval.ms",
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    "streams.num.standby.replicas",
    "streams.assignment.interval.ms",
)
_FAMILIES = ("consumer", "share", "streams")


def _bounds_of(name: str) -> tuple[str | None, str]:
    """The broker's keys for the least and the greatest value."""
    if name == "streams.num.standby.replicas":
        return None, "group.streams.max.standby.replicas"
    family, _, rest = name.partition(".")
    return f"group.{family}.min.{rest}", f"group.{family}.max.{rest}"


def validate_group_overrides(overrides: Mapping[str, str], broker: BrokerConfig) -> None:
    """ConfigError or ConfigConflict when these overrides can't be set on a group."""
    for name, text in overrides.items():
        if name not in GROUP_CONFIGS:
            raise ConfigConflict(name, text, f"Unknown group config name: {name}")
    values = _values(overrides, broker)
    for name in _BOUNDED:
        low, high = _bounds_of(name)
        _check_bounds(name, values[name], low=low, high=high, broker=broker)
    for family in _FAMILIES:
        session, heartbeat = f"{family}.session.timeout.ms", f"{family}.heartbeat.interval.ms"
        if _int(values[session]) <= _int(values[heartbeat]):
            raise ConfigConflict(session, values[session], f"{session} must be greater than {heartbeat}")


def _check_bounds(name: str, value: ConfigValue, *, low: str | None, high: str, broker: BrokerConfig) -> None:
    if low is not None and _int(value) < broker.int(low):
        raise ConfigConflict(name, value, f"{name} must be greater than or equal to {low}")
    if _int(value) > broker.int(high):
        raise ConfigConflict(name, value, f"{name} must be less than or equal to {high}")


def _values(overrides: Mapping[str, str], broker: BrokerConfig) -> dict[str, ConfigValue]:
    return {name: GROUP_CONFIGS[name].parse(overrides[name]) if name in overrides else value
            for name, value in _defaults(broker)}  # fmt: skip


def _defaults(broker: BrokerConfig) -> Iterator[tuple[str, ConfigValue]]:
    for name, definition in GROUP_CONFIGS.items():
        yield name, broker.value(definition.synonyms[0].name) if definition.synonyms else definition.default


def effective_group_int(name: str, overrides: Mapping[str, str], broker: BrokerConfig) -> int:
    """A group's value. One that was set before the broker's bounds changed is moved to the nearest that is allowed."""
    text = overrides.get(name)
    if text is None:
        return broker.int(GROUP_CONFIGS[name].synonyms[0].name)
    value = _int(GROUP_CONFIGS[name].parse(text))
    low, high = _bounds_of(name)
    if low is not None:
        value = max(value, broker.int(low))
    return min(value, broker.int(high))


def check_broker_bounds(broker: BrokerConfig) -> None:
    """The broker's own defaults are within its bounds, or it doesn't start."""
    for name in _BOUNDED:
        low, high = _bounds_of(name)
        if low is not None and broker.int(high) < broker.int(low):
            raise ConfigConflict(high, broker.int(high), f"{high} must be greater than or equal to {low}")
        _check_bounds(f"group.{name}", broker.value(f"group.{name}"), low=low, high=high, broker=broker)
    for family in _FAMILIES:
        session, heartbeat = f"group.{family}.session.timeout.ms", f"group.{family}.heartbeat.interval.ms"
        if broker.int(heartbeat) >= broker.int(session):
            raise ConfigConflict(heartbeat, broker.int(heartbeat), f"{heartbeat} must be less than {session}")


def _int(value: ConfigValue) -> int:
    assert isinstance(value, int), "all bounded values are whole numbers"
    return value
