"""What the broker's configuration allows groups and their offsets."""

from __future__ import annotations

from typing import Self

import msgspec

from moldau.core.config.broker import BrokerConfig

NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000  # Kafka's: a client that vanished while it first joined is forgotten after this
MINUTE_MS = 60_000


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
