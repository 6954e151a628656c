"""How this broker protects its channels to others: by the listener that brokers use, with its keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from moldau.core.clock import SystemClock
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigConflict, ConfigError
from moldau.core.config.inter_broker import MECHANISM, inter_broker_listener
from moldau.core.config.listener_security import ENDPOINT_IDENTIFICATION, JAAS_CONFIG, ListenerSecurity
from moldau.node.securing.certificates import unusable
from moldau.replication.channel_security import ChannelSecurity
from moldau.security.jaas import InvalidJaasConfig, LoginModule, login_module
from moldau.security.sasl.client_credentials import CLIENT_MECHANISMS, client_credentials, jaas_credentials
from moldau.security.sasl.client_login import ClientCredentials, LoginFailed
from moldau.security.sasl.mechanism import OAUTHBEARER
from moldau.security.tls.client_contexts import ClientTls
from moldau.security.tls.contexts import LoadedTls
from moldau.security.tls.settings import TlsConfigError, TlsSettings

SERVICE_NAME = "sasl.kerberos.service.name"
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
TOKEN_CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
TOKEN_CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"
TOKEN_SCOPE = "sasl.oauthbearer.scope"


def channel_security(current: Callable[[], BrokerConfig]) -> ChannelSecurity:
    """Certificates and passwords are those of the moment, when a connection is made. ConfigError at once."""
    security = _security(current())
    credentials = None
    if security.uses_sasl:
        credentials = partial(_current_credentials, current)
        broker_credentials(security)
    return ChannelSecurity(
        tls=_tls(security, current) if security.uses_tls else None,
        credentials=credentials,
        client_id=f"broker-{current().node_id}",
    )


def broker_credentials(security: ListenerSecurity, *, reads_key: bool = True) -> ClientCredentials:
    """Who this broker is to others. `reads_key` looks into files for it, and is for a start."""
    mechanism, name = str(security.value(MECHANISM)), security.listener.name
    if mechanism not in CLIENT_MECHANISMS:
        allowed = f"brokers log in on listener {name} by one of {', '.join(CLIENT_MECHANISMS)}"
        raise ConfigError(MECHANISM, mechanism, allowed)
    if mechanism not in security.mechanisms:
        message = f"{MECHANISM} is {mechanism}, which must be in sasl.enabled.mechanisms of listener {name}"
        raise ConfigConflict(MECHANISM, mechanism, message)
    key, text = security.key_of(JAAS_CONFIG, mechanism), security.text(JAAS_CONFIG, mechanism)
    if text is None:
        message = f"{key} is not set: brokers log in on listener {name} with the user that it names"
        raise ConfigConflict(key, None, message)
    service_name = security.text(SERVICE_NAME, mechanism)
    try:
        module = login_module(text, mechanism)
        if mechanism == OAUTHBEARER:
            return _by_bearer_tokens(security, module)
        return jaas_credentials(mechanism, module, service_name=service_name, reads_key=reads_key)
    except InvalidJaasConfig as wrong:
        raise ConfigConflict(key, None, f"{key}: {wrong} (brokers log in on listener {name})") from None


def _security(config: BrokerConfig) -> ListenerSecurity:
    return ListenerSecurity(config, inter_broker_listener(config))


def _current_credentials(current: Callable[[], BrokerConfig]) -> ClientCredentials:
    try:
        return broker_credentials(_security(current()), reads_key=False)
    except ConfigError as wrong:  # set while the broker runs
        raise LoginFailed(str(wrong)) from None


def _tls(security: ListenerSecurity, current: Callable[[], BrokerConfig]) -> Callable[[], LoadedTls]:
    try:
        tls = ClientTls(lambda: _tls_settings(_security(current())), now_s=lambda: SystemClock().now_ms() / 1_000)
    except TlsConfigError as wrong:
        raise unusable(security, wrong) from None
    return tls.current


def _tls_settings(security: ListenerSecurity) -> TlsSettings:
    values = {**security.tls_values(), ENDPOINT_IDENTIFICATION: security.value(ENDPOINT_IDENTIFICATION)}
    return TlsSettings.from_keys(values)


def _by_bearer_tokens(security: ListenerSecurity, module: LoginModule) -> ClientCredentials:
    """With a token that somebody else keeps fresh in a file, or one of an issuer, who may keep us waiting."""
    from moldau.security.sasl.oauthbearer.retrieval import TokenEndpoint, retriever_of

    def given(key: str, option: str) -> str:
        return security.text(key, OAUTHBEARER) or module.options.get(option, "")

    endpoint = TokenEndpoint(
        security.text(TOKEN_URL, OAUTHBEARER) or "",
        given(TOKEN_CLIENT_ID, "clientId"),
        given(TOKEN_CLIENT_SECRET, "clientSecret"),
        given(TOKEN_SCOPE, "scope"),
    )
    if not endpoint.is_usable:
        key = security.key_of(TOKEN_URL, OAUTHBEARER)
        ways = f"from a file, as in file:///run/broker.jwt, or by https: with {TOKEN_CLIENT_ID} and .secret"
        raise ConfigConflict(key, None, f"{key}: brokers get their token {ways}")
    found = client_credentials(OAUTHBEARER, user=None, password=None, bearer_token=retriever_of(endpoint))
    return replace(found, is_slow=not endpoint.is_file)
