"""A line of the log when a running broker is given a configuration that changes nothing."""

from __future__ import annotations

import logging

from moldau.controller.image import ClusterImage
from moldau.core.config.settings import is_default
from moldau.core.config.support import without_effect

LOGGER = logging.getLogger(__name__)


def log_config_changes(old: ClusterImage, new: ClusterImage) -> None:
    """To be subscribed to the controller's images: what a start says of such keys, said of those that are set later."""
    if old.broker_configs is new.broker_configs:
        return
    for broker, values in new.broker_configs.items():
        before = old.broker_config(broker)
        for key, value in values.items():
            reason = without_effect(key) if before.get(key) != value else None
            if reason is not None and not is_default(key, value):
                whose = f"broker {broker}" if broker else "all brokers"
                LOGGER.warning("configuration key without effect, set for %s: %s (%s)", whose, key, reason)
