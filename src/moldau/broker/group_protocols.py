"""Which group protocols this broker speaks at the moment."""

from __future__ import annotations

from moldau.broker.context import Services
from moldau.controller.features import GROUP_VERSION, level_of

CONSUMER = "consumer"


def has_consumer_groups(services: Services) -> bool:
    """The cluster must have agreed to it, and the broker's configuration must not forbid it."""
    return level_of(services.controller.image, GROUP_VERSION) >= 1 and CONSUMER in services.config.items(
        "group.coordinator.rebalance.protocols"
    )
