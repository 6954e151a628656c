"""The configuration of a topic: every key of Kafka 4.3, and the typed values the log works with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Self

from moldau.core.config.definitions import (
    LONG_MAX,
    Check,
    ConfigConflict,
    ConfigDef,
    ConfigError,
    ConfigType,
    ConfigValue,
    Synonym,
    at_least,
    between,
    gzip_level,
    list_of,
    one_of,
    parse_text,
)
from moldau.core.config.topic_docs import TOPIC_DOCS
from moldau.core.limits import MIB

HOUR_MS = 60 * 60 * 1000
DAY_MS = 24 * HOUR_MS
WEEK_MS = 7 * DAY_MS

BOOLEAN, STRING, INT, LONG, DOUBLE, LIST = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.LONG,
    ConfigType.DOUBLE,
    ConfigType.LIST,
)

_THROTTLED_REPLICA = re.compile(r"[0-9]+:[0-9]+\Z")


def _throttled_replicas(name: str, value: ConfigValue) -> None:
    assert isinstance(value, tuple)
    if value != ("*",) and not all(_THROTTLED_REPLICA.match(item) for item in value if item):
        message = (
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )
        raise ConfigError(name, f"[{', '.join(value)}]", message)


def _define(
    name: str, kind: ConfigType, default: ConfigValue, check: Check | None, *synonyms: Synonym | str
) -> ConfigDef:
    wrapped = tuple(Synonym(each) if isinstance(each, str) else each for each in synonyms)
    return ConfigDef(
        name, kind, default, check, doc=TOPIC_DOCS[name], synonyms=wrapped, repeats=check is _throttled_replicas
    )


_COMPRESSIONS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

_DEFINITIONS = (
    _define("segment.bytes", INT, 1024 * MIB, at_least(MIB), "log.segment.bytes"),
    _define("segment.ms", LONG, WEEK_MS, at_least(1), "log.roll.ms", Synonym("log.roll.hours", HOUR_MS)),
    _define("segment.jitter.ms", LONG, 0, at_least(0), "log.roll.jitter.ms", Synonym("log.roll.jitter.hours", HOUR_MS)),
    _define("segment.index.bytes", INT, 10 * MIB, at_least(4), "log.index.size.max.bytes"),
    _define("flush.messages", LONG, LONG_MAX, at_least(1), "log.flush.interval.messages"),
    _define("flush.ms", LONG, LONG_MAX, at_least(0), "log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    _define("retention.bytes", LONG, -1, None, "log.retention.bytes"),
    _define(
        "retention.ms", LONG, WEEK_MS, at_least(-1),
        "log.retention.ms", Synonym("log.retention.minutes", 60_000), Synonym("log.retention.hours", HOUR_MS),
    ),
    _define("max.message.bytes", INT, MIB + 12, at_least(0), "message.max.bytes"),
    _define("index.interval.bytes", INT, 4096, at_least(0), "log.index.interval.bytes"),
    _define("delete.retention.ms", LONG, DAY_MS, at_least(0), "log.cleaner.delete.retention.ms"),
    _define("min.compaction.lag.ms", LONG, 0, at_least(0), "log.cleaner.min.compaction.lag.ms"),
    _define("max.compaction.lag.ms", LONG, LONG_MAX, at_least(1), "log.cleaner.max.compaction.lag.ms"),
    _define("file.delete.delay.ms", LONG, 60_000, at_least(0), "log.segment.delete.delay.ms"),
    _define("min.cleanable.dirty.ratio", DOUBLE, 0.5, between(0, 1), "log.cleaner.min.cleanable.ratio"),
    _define("cleanup.policy", LIST, ("delete",), list_of("compact", "delete", may_be_empty=True), "log.cleanup.policy"),
    _define("unclean.leader.election.enable", BOOLEAN, False, None, "unclean.leader.election.enable"),
    _define("min.insync.replicas", INT, 1, at_least(1), "min.insync.replicas"),
    _define("compression.type", STRING, "producer", one_of(*_COMPRESSIONS), "compression.type"),
    _define("compression.gzip.level", INT, -1, gzip_level, "compression.gzip.level"),
    _define("compression.lz4.level", INT, 9, between(1, 17), "compression.lz4.level"),
    _define("compression.zstd.level", INT, 3, between(-131072, 22), "compression.zstd.level"),
    _define("preallocate", BOOLEAN, False, None, "log.preallocate"),
    _define(
        "message.timestamp.type", STRING, "CreateTime", one_of("CreateTime", "LogAppendTime"),
        "log.message.timestamp.type",
    ),
    _define(
        "message.timestamp.before.max.ms", LONG, LONG_MAX, at_least(0), "log.message.timestamp.before.max.ms"
    ),
    _define("message.timestamp.after.max.ms", LONG, HOUR_MS, at_least(0), "log.message.timestamp.after.max.ms"),
    _define("leader.replication.throttled.replicas", LIST, (), _throttled_replicas),
    _define("follower.replication.throttled.replicas", LIST, (), _throttled_replicas),
    _define("remote.storage.enable", BOOLEAN, False, None),
    _define("local.retention.ms", LONG, -2, at_least(-2), "log.local.retention.ms"),
    _define("local.retention.bytes", LONG, -2, at_least(-2), "log.local.retention.bytes"),
    _define("remote.log.copy.disable", BOOLEAN, False, None),
    _define("remote.log.delete.on.disable", BOOLEAN, False, None),
    ConfigDef("internal.segment.bytes", INT, None, doc=TOPIC_DOCS["internal.segment.bytes"], internal=True),
)  # fmt: skip

TOPIC_CONFIGS: Mapping[str, ConfigDef] = MappingProxyType({each.name: each for each in _DEFINITIONS})


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """Typed values, each field named as its key with underscores. Topics without overrides share one object."""

    segment_bytes: int
    segment_ms: int
    segment_jitter_ms: int
    segment_index_bytes: int
    flush_messages: int
    flush_ms: int
    retention_bytes: int
    retention_ms: int
    max_message_bytes: int
    index_interval_bytes: int
    delete_retention_ms: int
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    file_delete_delay_ms: int
    min_cleanable_dirty_ratio: float
    cleanup_policy: frozenset[str]
    unclean_leader_election_enable: bool
    min_insync_replicas: int
    compression_type: str
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    preallocate: bool
    message_timestamp_type: str
    message_timestamp_before_max_ms: int
    message_timestamp_after_max_ms: int
    leader_replication_throttled_replicas: tuple[str, ...]
    follower_replication_throttled_replicas: tuple[str, ...]
    remote_storage_enable: bool
    local_retention_ms: int
    local_retention_bytes: int
    remote_log_copy_disable: bool
    remote_log_delete_on_disable: bool

    @classmethod
    def defaults(cls) -> Self:
        return cls.from_broker({})

    @classmethod
    def from_broker(cls, broker_values: Mapping[str, str]) -> Self:
        """The values of a topic without overrides, where the broker's explicit settings give the defaults."""
        return cls._of({name: broker_default(TOPIC_CONFIGS[name], broker_values) for name in _FIELD_OF})

    def override(self, overrides: Mapping[str, str]) -> Self:
        """These values with a topic's own on top. Unknown keys are ignored: a newer version may have stored them."""
        changed = {name: TOPIC_CONFIGS[name].parse(text) for name, text in overrides.items() if name in TOPIC_CONFIGS}
        if not changed:
            return self
        values: dict[str, Any] = {name: getattr(self, field) for name, field in _FIELD_OF.items()}
        values.update(changed)
        return type(self)._of(values)

    @classmethod
    def _of(cls, values: Mapping[str, Any]) -> Self:
        arguments = {field: values[name] for name, field in _FIELD_OF.items()}
        arguments["cleanup_policy"] = frozenset(values["cleanup.policy"])
        if values.get("internal.segment.bytes") is not None:
            arguments["segment_bytes"] = values["internal.segment.bytes"]
        return cls(**arguments)

    @property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def segment_ms_max(self) -> int:
        """Compaction never touches the active segment, so a bound on its lag also bounds a segment's age."""
        return min(self.max_compaction_lag_ms, self.segment_ms) if self.compact else self.segment_ms


_FIELD_OF: Mapping[str, str] = MappingProxyType({
    each.name.replace("_", "."): each.name for each in fields(TopicConfig)
})  # fmt: skip


def broker_default(definition: ConfigDef, broker_values: Mapping[str, str]) -> ConfigValue:
    """What a topic has when it sets nothing: the first broker key in the order of precedence that has a value."""
    for synonym in definition.synonyms:
        text = broker_values.get(synonym.name)
        if text is not None:
            return scale(definition, synonym, text)
    return definition.default


def scale(definition: ConfigDef, synonym: Synonym, text: str) -> ConfigValue:
    """The value of a broker key in the unit of the topic key; any negative retention keeps records for ever."""
    if synonym.factor == 1 and definition.name != "retention.ms":
        return definition.parse(text)
    value = parse_text(synonym.name, LONG if synonym.factor == 1 else INT, text)
    assert isinstance(value, int)
    return -1 if value < 0 else value * synonym.factor


def validate_topic_overrides(overrides: Mapping[str, str], defaults: TopicConfig) -> None:
    """ConfigError or ConfigConflict when these overrides can't be set on a topic."""
    for name, text in overrides.items():
        if name not in TOPIC_CONFIGS:
            raise ConfigConflict(name, text, f"Unknown topic config name: {name}")
    config = defaults.override(overrides)
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        message = (
            f"conflict topic config setting min.compaction.lag.ms ({config.min_compaction_lag_ms}) > "
            f"max.compaction.lag.ms ({config.max_compaction_lag_ms})"
        )
        raise ConfigConflict("min.compaction.lag.ms", config.min_compaction_lag_ms, message)
    if config.remote_storage_enable:
        message = (
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
        raise ConfigConflict("remote.storage.enable", "true", message)
