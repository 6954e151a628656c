"""What the broker's configuration allows groups and their offsets."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Self

import msgspec

from moldau.core.config.broker import BrokerConfig
from moldau.core.config.group import effective_group_int
from moldau.groups.consumer.assignors import ASSIGNORS

NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000  # Kafka's: a client that vanished while it first joined is forgotten after this
MINUTE_MS = 60_000

# A server.properties may name Kafka's own assignors by their classes.
_ASSIGNOR_CLASSES: Mapping[str, str] = MappingProxyType(
    {f"org.apache.kafka.coordinator.group.assignor.{name.capitalize()}Assignor": name for name in ASSIGNORS}
)


class GroupLimits(msgspec.Struct, frozen=True):
    members_max: int = 2**31 - 1
    session_timeout_ms_min: int = 6_000
    session_timeout_ms_max: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    offset_metadata_chars_max: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 60 * MINUTE_MS
    expiry_interval_ms: int = 600_000

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        return cls(
            members_max=config.int("group.max.size"),
            session_timeout_ms_min=config.int("group.min.session.timeout.ms"),
            session_timeout_ms_max=config.int("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms=config.int("group.initial.rebalance.delay.ms"),
            offset_metadata_chars_max=config.int("offset.metadata.max.bytes"),
            offsets_retention_ms=config.int("offsets.retention.minutes") * MINUTE_MS,
            expiry_interval_ms=config.int("offsets.retention.check.interval.ms"),
        )


class ConsumerGroupConfig(msgspec.Struct, frozen=True):
    """What holds for one consumer group: the broker's values, and those that were set for the group."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    migration_policy: str = "bidirectional"
    regex_refresh_ms: int = 600_000
    assignment_interval_ms: int = 1_000
    """The least time between two assignments: members that come together get one that is for all of them."""

    @classmethod
    def of(cls, broker: BrokerConfig, overrides: Mapping[str, str]) -> Self:
        assignors = tuple(_ASSIGNOR_CLASSES.get(name, name) for name in broker.items("group.consumer.assignors"))
        return cls(
            session_timeout_ms=effective_group_int("consumer.session.timeout.ms", overrides, broker),
            heartbeat_interval_ms=effective_group_int("consumer.heartbeat.interval.ms", overrides, broker),
            max_size=broker.int("group.consumer.max.size"),
            assignors=tuple(name for name in assignors if name in ASSIGNORS) or tuple(ASSIGNORS),
            migration_policy=broker.text("group.consumer.migration.policy").lower(),
            regex_refresh_ms=broker.int("group.consumer.regex.refresh.interval.ms"),
            assignment_interval_ms=effective_group_int("consumer.assignment.interval.ms", overrides, broker),
        )
