"""Which user this broker is to others, as far as its configuration alone says so."""

from __future__ import annotations

from moldau.core.config.broker import BrokerConfig
from moldau.core.config.inter_broker import MECHANISM, inter_broker_listener
from moldau.core.config.listener_security import JAAS_CONFIG, ListenerSecurity
from moldau.security.jaas import InvalidJaasConfig, login_module

_BY_USERNAME = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"})


def user_of_broker(config: BrokerConfig) -> str | None:
    """None for a login by a token, or by Kerberos: who that is, the other end says."""
    security = ListenerSecurity(config, inter_broker_listener(config))
    mechanism = str(security.value(MECHANISM))
    text = security.text(JAAS_CONFIG, mechanism)
    if mechanism not in _BY_USERNAME or text is None:
        return None
    try:
        module = login_module(text, mechanism)
    except InvalidJaasConfig:  # which whoever logs in with it is told
        return None
    return None if module.is_token_auth else module.username
