"""Configuration as clients are shown it: each key's value, where it comes from, and what it would be without that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile

from moldau.core.config.broker import BROKER_CONFIGS, DYNAMIC_BROKER_CONFIGS, BrokerLayers
from moldau.core.config.definitions import ConfigDef, ConfigSource, ConfigType, format_value
from moldau.core.config.topic import TOPIC_CONFIGS, broker_default

UNKNOWN_TYPE = 0


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A place where a value is set, under the name it has there."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    name: str
    value: str | None
    source: ConfigSource
    type: int
    documentation: str
    read_only: bool = False
    sensitive: bool = False
    synonyms: tuple[ConfigSynonym, ...] = ()


def topic_entries(overrides: Mapping[str, str], layers: BrokerLayers) -> Iterator[ConfigEntry]:
    """Every key of a topic; an internal one only where it is set."""
    broker_values = layers.effective()
    for name, definition in TOPIC_CONFIGS.items():
        text = overrides.get(name)
        if text is None and definition.internal:
            continue
        value = broker_default(definition, broker_values) if text is None else definition.parse(text)
        shown = format_value(value)
        names = [each.name for each in definition.synonyms]
        places = _places(names, layers, described=names[0]) if names else ()
        if text is not None:
            places = (ConfigSynonym(name, shown, ConfigSource.DYNAMIC_TOPIC_CONFIG), *places)
        yield _entry(definition, shown, places, read_only=False)


def broker_entries(layers: BrokerLayers) -> Iterator[ConfigEntry]:
    """Every key of this broker, and the unknown ones that were set, whose values may be secrets and are not shown."""
    effective = layers.effective()
    for name, definition in BROKER_CONFIGS.items():
        text = effective.get(name)
        shown = format_value(definition.default if text is None else definition.parse(text))
        places = _places(_names_for(name), layers, described=name)
        yield _entry(definition, shown, places, read_only=name not in DYNAMIC_BROKER_CONFIGS)
    for name in sorted(effective.keys() - BROKER_CONFIGS.keys()):
        places = _hidden(_places([name], layers, described=name))
        yield ConfigEntry(name, None, places[0].source, UNKNOWN_TYPE, "", sensitive=True, synonyms=places)


def cluster_default_entries(layers: BrokerLayers) -> Iterator[ConfigEntry]:
    """What was set for all brokers at once, and nothing else."""
    for name, text in layers.dynamic_default.items():
        definition = BROKER_CONFIGS.get(name, ConfigDef(name, ConfigType.PASSWORD, None))
        place = ConfigSynonym(name, text, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
        yield _entry(definition, text, (place,), read_only=name not in DYNAMIC_BROKER_CONFIGS)


def _entry(
    definition: ConfigDef, value: str | None, places: tuple[ConfigSynonym, ...], *, read_only: bool
) -> ConfigEntry:
    return ConfigEntry(
        name=definition.name,
        value=None if definition.sensitive else value,
        source=places[0].source if places else ConfigSource.DEFAULT_CONFIG,
        type=definition.type,
        documentation=definition.doc,
        read_only=read_only,
        sensitive=definition.sensitive,
        synonyms=_hidden(places) if definition.sensitive else places,
    )


def _hidden(places: tuple[ConfigSynonym, ...]) -> tuple[ConfigSynonym, ...]:
    return tuple(replace(place, value=None) for place in places)


def _names_for(name: str) -> Sequence[str]:
    """A broker key and the ones it goes before or after, as log.retention.ms before log.retention.hours."""
    for definition in TOPIC_CONFIGS.values():
        names = [each.name for each in definition.synonyms]
        if len(names) > 1 and name in names:
            return names if name != "log.flush.scheduler.interval.ms" else [name]
    return [name]


def _places(names: Sequence[str], layers: BrokerLayers, *, described: str) -> tuple[ConfigSynonym, ...]:
    """Where any of the names is set, strongest first, from the first place on that uses the described name itself."""
    found = [
        ConfigSynonym(name, texts[name], source)
        for source, texts in (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, layers.dynamic),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, layers.dynamic_default),
            (ConfigSource.STATIC_BROKER_CONFIG, layers.static),
        )
        for name in names
        if name in texts
    ]
    defaults = ((name, BROKER_CONFIGS[name].default) for name in names if name in BROKER_CONFIGS)
    found += [
        ConfigSynonym(name, format_value(value), ConfigSource.DEFAULT_CONFIG)
        for name, value in defaults
        if value is not None
    ]
    return tuple(dropwhile(lambda place: place.name != described, found))
