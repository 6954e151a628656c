"""The listener that brokers use among themselves, by Kafka's keys and rules."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from moldau.core.config.definitions import ConfigConflict, ConfigError
from moldau.core.config.listeners import ListenerConfig

if TYPE_CHECKING:
    from moldau.core.config.broker import BrokerConfig

NAME, PROTOCOL = "inter.broker.listener.name", "security.inter.broker.protocol"
MECHANISM = "sasl.mechanism.inter.broker.protocol"


def inter_broker_listener_name(config: BrokerConfig) -> str:
    """Without a name it is that of the security protocol."""
    return (config.optional_text(NAME) or config.text(PROTOCOL)).upper()


def inter_broker_listener(config: BrokerConfig) -> ListenerConfig:
    """As it is advertised. Where nothing was said of it, the first one has to do for brokers, too."""
    name, listeners = inter_broker_listener_name(config), config.advertised_listeners
    return next((each for each in listeners if each.name == name), listeners[0])


def check_inter_broker_listener(config: BrokerConfig, is_set: Collection[str]) -> None:
    name = config.optional_text(NAME)
    if name is not None and PROTOCOL in is_set:
        message = "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set."
        raise ConfigConflict(NAME, name, message)
    key, wanted = (NAME, name) if name is not None else (PROTOCOL, config.text(PROTOCOL))
    names = [each.name for each in config.advertised_listeners]
    if wanted.upper() not in names and key in is_set and not _asks_for_nothing(config, key):
        raise ConfigError(key, wanted, f"the name of an advertised listener of this broker: {', '.join(names)}")
    if MECHANISM in is_set and inter_broker_listener(config).security.startswith("SASL_"):
        _check_mechanism(config)


def _asks_for_nothing(config: BrokerConfig, key: str) -> bool:
    """Kafka's default, written out in a configuration whose plain listener has a name of its own."""
    return key == PROTOCOL and config.text(PROTOCOL) == inter_broker_listener(config).security


def _check_mechanism(config: BrokerConfig) -> None:
    from moldau.core.config.listener_security import ListenerSecurity

    listener, mechanism = inter_broker_listener(config), config.text(MECHANISM)
    enabled = ListenerSecurity(config, listener).mechanisms
    if mechanism not in enabled:
        message = (
            f"{MECHANISM} is {mechanism}, which must be in sasl.enabled.mechanisms of the listener that brokers use, "
            f"{listener.name}: {', '.join(enabled)}"
        )
        raise ConfigConflict(MECHANISM, mechanism, message)
