"""DescribeConfigs as pure functions: which value a key has, where it comes from, and what it would be otherwise.

A layer's values are listed as they were written, in the order in which they win. When a key is described by way of an
older one (log.retention.hours behind log.retention.ms), Kafka lists the older one only after the newer one was seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from moldau.core.config.broker import (
    BROKER_CONFIGS,
    DYNAMIC_BROKER_CONFIGS,
    THROTTLES,
    BrokerConfig,
    BrokerLayers,
    listener_key,
)
from moldau.core.config.client_metrics import CLIENT_METRICS_CONFIGS
from moldau.core.config.definitions import ConfigDef, ConfigSource, ConfigValue, format_value
from moldau.core.config.group import GROUP_CONFIGS
from moldau.core.config.support import SECURING, refusal, without_effect
from moldau.core.config.topic import TOPIC_CONFIGS, broker_default

UNKNOWN_TYPE = 0
_LISTENER_SECURITY = re.compile(r"listener\.name\.[^.]*\.(.*)")  # Kafka looks no further than behind the listener
_JAVA_CAPACITY_MIN = 16
_JAVA_LOAD_FACTOR = 0.75


class ConfigSynonym(msgspec.Struct, frozen=True):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(msgspec.Struct, frozen=True):
    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    type: int
    synonyms: tuple[ConfigSynonym, ...]
    documentation: str | None


_ROLL = ("log.roll.ms", "log.roll.hours")
_JITTER = ("log.roll.jitter.ms", "log.roll.jitter.hours")
_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_FAMILY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(_ROLL, _ROLL),
        **dict.fromkeys(_JITTER, _JITTER),
        **dict.fromkeys(_RETENTION, _RETENTION),
        "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    }
)


def java_order(names: Iterable[str]) -> list[str]:
    """The order in which Java's HashMap lists keys that were put into it in this order.

    DescribeConfigs answers in this order, and tests that clients ship for themselves look at the first entries.
    """
    listed = list(names)
    capacity = _JAVA_CAPACITY_MIN
    while len(listed) > capacity * _JAVA_LOAD_FACTOR:
        capacity *= 2
    return sorted(listed, key=lambda name: _java_hash(name) & (capacity - 1))


@lru_cache(maxsize=1024)  # every key there is, and what users add
def _java_hash(text: str) -> int:
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value ^ (value >> 16)


def _in_java_order(entries: Iterable[ConfigEntry]) -> list[ConfigEntry]:
    by_name = {entry.name: entry for entry in entries}
    return [by_name[name] for name in java_order(by_name)]


def describe_topic_config(overrides: Mapping[str, str], layers: BrokerLayers) -> list[ConfigEntry]:
    """Every key of a topic that has these overrides, on a broker with these layers."""
    entries = dict(_topic_defaults(layers))
    for name, text in overrides.items():
        definition = TOPIC_CONFIGS.get(name)
        if definition is not None:
            entries[name] = _overridden(entries.get(name) or _default_of(definition, layers), definition, text)
    return [entries[name] for name in java_order(entries)]


@lru_cache(maxsize=4)  # a broker has one set of layers at a time, and every CreateTopics asks for all of this
def _topic_defaults(layers: BrokerLayers) -> Mapping[str, ConfigEntry]:
    return {each.name: _default_of(each, layers) for each in TOPIC_CONFIGS.values() if not each.internal}


def _default_of(definition: ConfigDef, layers: BrokerLayers) -> ConfigEntry:
    synonyms = _synonyms(definition.synonyms[0].name, layers) if definition.synonyms else ()
    return ConfigEntry(
        name=definition.name,
        value=format_value(broker_default(definition, layers.effective())),
        source=_source(synonyms),
        read_only=False,
        sensitive=False,
        type=definition.type,
        synonyms=synonyms,
        documentation=definition.doc,
    )


def describe_group_config(overrides: Mapping[str, str], layers: BrokerLayers) -> list[ConfigEntry]:
    """Every key of a group that has these overrides; a group need not exist to have a configuration."""
    entries = []
    for definition in GROUP_CONFIGS.values():
        entry = _default_of(definition, layers)
        if not definition.synonyms:
            own = ConfigSynonym(definition.name, entry.value, ConfigSource.DEFAULT_CONFIG)
            entry = replace(entry, synonyms=(own,))
        if definition.name in overrides:
            entry = _overridden(entry, definition, overrides[definition.name], source=ConfigSource.GROUP_CONFIG)
        entries.append(entry)
    return _in_java_order(entries)


def describe_client_metrics_config(values: Mapping[str, str]) -> list[ConfigEntry]:
    """Every key of a subscription that has these values; one that does not exist has the defaults."""
    entries = []
    for definition in CLIENT_METRICS_CONFIGS.values():
        entry = ConfigEntry(
            name=definition.name,
            value=format_value(definition.default),
            source=ConfigSource.DEFAULT_CONFIG,
            read_only=False,
            sensitive=False,
            type=definition.type,
            synonyms=(),
            documentation=definition.doc,
        )
        if definition.name in values:
            source = ConfigSource.CLIENT_METRICS_CONFIG
            entry = _overridden(entry, definition, values[definition.name], source=source)
        entries.append(entry)
    return _in_java_order(entries)


def _overridden(
    default: ConfigEntry,
    definition: ConfigDef,
    text: str,
    *,
    source: ConfigSource = ConfigSource.DYNAMIC_TOPIC_CONFIG,
) -> ConfigEntry:
    own = ConfigSynonym(definition.name, format_value(definition.parse(text)), source)
    return replace(default, value=own.value, source=source, synonyms=(own, *default.synonyms))


def describe_broker_config(config: BrokerConfig) -> list[ConfigEntry]:
    """Every key of one broker, also those that were set and mean nothing here."""
    shown = [name for name, definition in BROKER_CONFIGS.items() if not definition.internal]
    unknown = [name for name in config.layers.effective() if name not in BROKER_CONFIGS]
    set_to = config.layers.effective()
    entries = [_broker_entry(name, set_to[name], config.layers, config.layers) for name in java_order(unknown)]
    known = [_broker_entry(name, config.value(name), config.layers, config.layers) for name in java_order(shown)]
    return entries + known


def describe_broker_defaults(config: BrokerConfig) -> list[ConfigEntry]:
    """The keys that are set for all brokers of the cluster."""
    cluster_wide = BrokerLayers(dynamic_default=config.layers.dynamic_default)
    entries = []
    for name, text in config.layers.dynamic_default.items():
        definition = _definition_of(name)
        value = text if definition is None else definition.parse(text)
        entries.append(_broker_entry(name, value, cluster_wide, config.layers, with_defaults=False))
    return _in_java_order(entries)


def _broker_entry(
    name: str, value: ConfigValue, shown: BrokerLayers, layers: BrokerLayers, *, with_defaults: bool = True
) -> ConfigEntry:
    definition = _definition_of(name)
    # What can't be typed could be a password.
    sensitive = definition is None or definition.sensitive
    synonyms = _synonyms(name, shown, with_defaults=with_defaults, sensitive=sensitive)
    # A list is shown as it was written, not as it was read.
    effective = layers.effective().get(name) if definition is not None else None
    documentation = None if definition is None or name in THROTTLES else definition.doc or _undocumented(name)
    return ConfigEntry(
        name=name,
        value=None if sensitive else _shown_value(name, value, effective),
        source=_source(synonyms),
        read_only=name not in DYNAMIC_BROKER_CONFIGS,
        sensitive=sensitive,
        type=UNKNOWN_TYPE if definition is None else definition.type,
        synonyms=synonyms,
        documentation=documentation,
    )


def _definition_of(name: str) -> ConfigDef | None:
    found = listener_key(name)
    if found is None and (of_listener := _LISTENER_SECURITY.match(name)) and of_listener[1] in SECURING:
        return BROKER_CONFIGS[of_listener[1]]
    return BROKER_CONFIGS.get(name if found is None else found[1]) or THROTTLES.get(name)


def _undocumented(name: str) -> str:
    refused = refusal(name)
    reason = without_effect(name) if refused is None else refused.reason
    return f"No effect: {reason}." if reason else ""


def _shown_value(name: str, value: ConfigValue, effective: str | None) -> str | None:
    if name in ("node.id", "broker.id") or effective is None:
        return format_value(value)
    return effective if isinstance(value, str) else format_value(value)


def _synonyms(
    name: str, layers: BrokerLayers, *, with_defaults: bool = True, sensitive: bool = False
) -> tuple[ConfigSynonym, ...]:
    of_listener = listener_key(name)
    family = _FAMILY.get(name, (name,)) if of_listener is None else (name, of_listener[1])
    by_layer = (
        (ConfigSource.DYNAMIC_BROKER_CONFIG, layers.dynamic),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, layers.dynamic_default),
        (ConfigSource.STATIC_BROKER_CONFIG, layers.static),
    )
    found = [
        ConfigSynonym(each, None if sensitive else values[each], source)
        for source, values in by_layer
        for each in family
        if each in values
    ]
    if with_defaults:
        found += _default_synonyms(family)
    first = next((index for index, each in enumerate(found) if each.name == name), len(found))
    return tuple(found[first:])


def _default_synonyms(family: Iterable[str]) -> list[ConfigSynonym]:
    definitions = [BROKER_CONFIGS[each] for each in family if each in BROKER_CONFIGS]
    return [
        ConfigSynonym(each.name, format_value(each.default), ConfigSource.DEFAULT_CONFIG)
        for each in definitions
        if each.default is not None
    ]


def _source(synonyms: tuple[ConfigSynonym, ...]) -> ConfigSource:
    return synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
