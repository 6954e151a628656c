"""The expected values are what Apache Kafka 4.3.1 answered to the same settings."""

from __future__ import annotations

from moldau.core.config.broker import BrokerConfig, BrokerLayers
from moldau.core.config.definitions import ConfigSource, ConfigType
from moldau.core.config.describe import (
    ConfigEntry,
    ConfigSynonym,
    describe_broker_config,
    describe_broker_defaults,
    describe_topic_config,
)

TOPIC, HERE, EVERYWHERE, STATIC, DEFAULT = (ConfigSource(number) for number in range(1, 6))

LAYERS = BrokerLayers(
    static={"node.id": "1", "broker.id": "1", "num.partitions": "4", "my.secret": "x"},
    dynamic_default={"log.retention.ms": "3600000", "log.roll.ms": "1000000", "foo": "x"},
    dynamic={"log.retention.ms": "7200000"},
)


def by_name(entries: list[ConfigEntry]) -> dict[str, ConfigEntry]:
    return {entry.name: entry for entry in entries}


def synonyms(*values: tuple[str, str | None, ConfigSource]) -> tuple[ConfigSynonym, ...]:
    return tuple(ConfigSynonym(*each) for each in values)


def test_a_topics_value_comes_before_all_others() -> None:
    entry = by_name(describe_topic_config({"retention.ms": "5"}, LAYERS))["retention.ms"]
    assert (entry.value, entry.source) == ("5", TOPIC)
    assert entry.synonyms == synonyms(
        ("retention.ms", "5", TOPIC),
        ("log.retention.ms", "7200000", HERE),
        ("log.retention.ms", "3600000", EVERYWHERE),
        ("log.retention.hours", "168", DEFAULT),
    )


def test_a_broker_wide_value_shows_through() -> None:
    entry = by_name(describe_topic_config({}, LAYERS))["segment.ms"]
    assert (entry.value, entry.source) == ("1000000", EVERYWHERE)
    assert entry.synonyms == synonyms(("log.roll.ms", "1000000", EVERYWHERE), ("log.roll.hours", "168", DEFAULT))


def test_the_older_key_is_no_synonym_while_the_newer_one_is_not_set() -> None:
    entry = by_name(describe_topic_config({}, BrokerLayers()))["retention.ms"]
    assert (entry.value, entry.source, entry.synonyms) == ("604800000", DEFAULT, ())


def test_an_internal_key_shows_only_when_it_is_set() -> None:
    assert len(describe_topic_config({}, BrokerLayers())) == 33
    assert by_name(describe_topic_config({"internal.segment.bytes": "9"}, BrokerLayers()))["internal.segment.bytes"]


def test_a_broker_shows_where_its_values_come_from() -> None:
    entries = by_name(describe_broker_config(BrokerConfig(LAYERS)))
    assert entries["log.retention.ms"].synonyms == synonyms(
        ("log.retention.ms", "7200000", HERE),
        ("log.retention.ms", "3600000", EVERYWHERE),
        ("log.retention.hours", "168", DEFAULT),
    )
    assert entries["num.partitions"].synonyms == synonyms(
        ("num.partitions", "4", STATIC), ("num.partitions", "1", DEFAULT)
    )
    assert (entries["num.partitions"].read_only, entries["log.retention.ms"].read_only) == (True, False)
    assert entries["broker.rack"].synonyms == ()
    assert entries["log.retention.hours"].synonyms == synonyms(("log.retention.hours", "168", DEFAULT))


def test_what_has_no_type_could_be_a_password() -> None:
    entries = by_name(describe_broker_config(BrokerConfig(LAYERS)))
    assert (entries["my.secret"].value, entries["my.secret"].sensitive, entries["my.secret"].type) == (None, True, 0)
    assert entries["foo"].synonyms == synonyms(("foo", None, EVERYWHERE))


def test_a_throttle_that_is_set_is_shown() -> None:
    rate = "leader.replication.throttled.rate"
    layers = BrokerLayers(dynamic={rate: "1000"})
    entry = by_name(describe_broker_config(BrokerConfig(layers)))[rate]
    assert (entry.value, entry.sensitive, entry.type) == ("1000", False, ConfigType.LONG)
    assert rate not in by_name(describe_broker_config(BrokerConfig(LAYERS)))


def test_the_clusters_defaults_are_only_what_was_set_for_all() -> None:
    entries = by_name(describe_broker_defaults(BrokerConfig(LAYERS)))
    assert entries.keys() == {"log.retention.ms", "log.roll.ms", "foo"}
    assert entries["log.retention.ms"].value == "3600000"
    assert entries["log.retention.ms"].synonyms == synonyms(("log.retention.ms", "3600000", EVERYWHERE))
