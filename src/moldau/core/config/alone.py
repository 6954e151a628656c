"""What a broker that is the whole cluster can be told about its cluster: Kafka's combined mode with one node."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from moldau.core.config.definitions import ConfigError
from moldau.core.config.inter_broker import check_inter_broker_listener

if TYPE_CHECKING:
    from moldau.core.config.broker import BrokerConfig

_ROLES = {"broker", "controller"}


def check_alone(config: BrokerConfig, *, is_set: Collection[str]) -> None:
    """ConfigError when the configuration is that of a node which needs others."""
    _check_roles(config)
    check_inter_broker_listener(config, is_set)


def _check_roles(config: BrokerConfig) -> None:
    roles = config.value("process.roles")
    if isinstance(roles, tuple) and set(roles) != _ROLES:
        allowed = "every broker can be the controller; use broker,controller, or remove it"
        raise ConfigError("process.roles", ",".join(roles), allowed)
    for key in ("controller.quorum.voters", "controller.quorum.bootstrap.servers"):
        servers = config.items(key)
        if len(servers) > 1:
            allowed = (
                "there is no controller quorum: brokers meet at zookeeper.connect; name only this node, or remove it"
            )
            raise ConfigError(key, ",".join(servers), allowed)
    for voter in config.items("controller.quorum.voters"):
        if int(voter.partition("@")[0]) != config.node_id:
            allowed = (
                f"there is no controller quorum, and this is node {config.node_id} (node.id); "
                "name only this node, or remove it"
            )
            raise ConfigError("controller.quorum.voters", voter, allowed)
