from __future__ import annotations

import pytest

from moldau.core.config.definitions import ConfigError
from moldau.core.config.topic import TOPIC_CONFIGS, TopicConfig, validate_topic_overrides


def test_overrides_lie_over_the_brokers_values_and_those_over_the_defaults() -> None:
    defaults = TopicConfig.from_broker({"log.retention.ms": "6", "log.segment.bytes": "2000000"})
    config = defaults.override({"retention.ms": "5"})
    assert (config.retention_ms, config.segment_bytes, config.max_message_bytes) == (5, 2_000_000, 1_048_588)


def test_topics_without_overrides_share_their_values() -> None:
    defaults = TopicConfig.defaults()
    assert defaults.override({}) is defaults
    assert defaults.override({"a.key.of.a.newer.version": "1"}) is defaults


def test_policies_are_a_set() -> None:
    config = TopicConfig.defaults().override({"cleanup.policy": "compact, delete,compact"})
    assert config.cleanup_policy == {"compact", "delete"}
    assert (config.compact, config.delete) == (True, True)
    assert config.override({"retention.ms": "1"}).cleanup_policy == {"compact", "delete"}


def test_compaction_lag_bounds_the_age_of_a_segment() -> None:
    lagging = TopicConfig.defaults().override({"max.compaction.lag.ms": "10"})
    assert lagging.segment_ms_max == lagging.segment_ms
    assert lagging.override({"cleanup.policy": "compact"}).segment_ms_max == 10


def test_every_key_is_explained() -> None:
    assert not [name for name, definition in TOPIC_CONFIGS.items() if not definition.doc]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"retention.ms": "x", "foo": "1"}, "Unknown topic config name: foo"),
        ({"retention.ms": "-5"}, "Invalid value -5 for configuration retention.ms: Value must be at least -1"),
        (
            {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
            "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
        ),
        (
            {"remote.storage.enable": "true"},
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        ),
    ],
)
def test_overrides_are_refused_in_kafkas_words(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        validate_topic_overrides(overrides, TopicConfig.defaults())
    assert str(refused.value) == message
