"""The two throttles of a broker, from the configuration of brokers and of topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.core.config.topic import TopicConfig
from moldau.replication.partition import Partition
from moldau.replication.throttle import UNLIMITED, Throttle, is_replica_throttled

if TYPE_CHECKING:
    from moldau.broker.replication import Replication


def sending(replication: Replication) -> Throttle:
    rate_key = "leader.replication.throttled.rate"
    return _throttle(replication, rate_key, lambda config: config.leader_replication_throttled_replicas)


def receiving(replication: Replication) -> Throttle:
    rate_key = "follower.replication.throttled.rate"
    return _throttle(replication, rate_key, lambda config: config.follower_replication_throttled_replicas)


def _throttle(
    replication: Replication, rate_key: str, entries_of: Callable[[TopicConfig], tuple[str, ...]]
) -> Throttle:
    broker_id, config = replication.broker_id, replication.config()

    def is_throttled(partition: Partition) -> bool:
        entries = entries_of(partition.log.config)
        return bool(entries) and is_replica_throttled(entries, partition.index, broker_id)

    def rate() -> int:
        """Set while brokers run, and nowhere else; a text that is no number limits nothing."""
        image = replication.image()
        text = image.broker_config(str(broker_id)).get(rate_key) or image.broker_config("").get(rate_key) or ""
        return int(text) if text.isdecimal() else UNLIMITED

    return Throttle(
        rate,
        is_throttled,
        samples=config.int("replication.quota.window.num"),
        sample_ms=1_000 * config.int("replication.quota.window.size.seconds"),
    )
