"""What was changed while brokers ran, on top of a broker's own configuration, as far as the two go together.

Whoever decided a change could not know what every broker has in its file, which may have changed since, too; and a
newer version may refuse what an older one took. A broker that refused to start because of it could not be helped by
anybody: it leaves such a value out, as if it was never set, and says so.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from moldau.broker.context import Services
from moldau.controller.image import ClusterImage
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.core.config.settings import shown

LOGGER = logging.getLogger(__name__)


def configured(config: BrokerConfig, image: ClusterImage) -> BrokerConfig:
    """The static configuration with what was changed while brokers ran."""
    for_all, own = image.broker_config(""), image.broker_config(str(config.node_id))
    try:
        return config.with_dynamic(for_all, own)
    except ConfigError:
        # What is set for this broker alone comes first: it is what a value for all brokers may not go with.
        config = _with_fitting(config, own, is_own=True)
        return _with_fitting(config, for_all, is_own=False)


def _with_fitting(config: BrokerConfig, wanted: Mapping[str, str], *, is_own: bool) -> BrokerConfig:
    left, refused = dict(wanted), dict[str, ConfigError]()
    while left:
        before = len(left)
        for name, value in sorted(left.items()):
            layers = config.layers
            try:
                if is_own:
                    config = config.with_dynamic(layers.dynamic_default, {**layers.dynamic, name: value})
                else:
                    config = config.with_dynamic({**layers.dynamic_default, name: value}, layers.dynamic)
            except ConfigError as wrong:
                refused[name] = wrong
            else:
                del left[name]
        if len(left) == before:  # else one of them may go with what was added after it was tried
            break
    whose = f"broker {config.node_id}" if is_own else "all brokers"
    for name, value in sorted(left.items()):
        LOGGER.error(
            "%s=%s, which was set for %s, does not go with this broker's own configuration and has no effect here: %s",
            name, shown(name, value), whose, refused[name],
        )  # fmt: skip
    return config


def reconfigure(services: Services, config: BrokerConfig, image: ClusterImage) -> None:
    """Take over what was changed. Who leads and follows does not wait for a better change."""
    services.config = configured(config, image)
    services.replication.reconfigured()
