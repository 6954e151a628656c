"""A SASL listener's logins by its configuration: each enabled mechanism with the users that it knows."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from moldau.broker.context import Services
from moldau.broker.requests.logging_in import Checks, Logins
from moldau.controller.settings.scram_credentials import CurrentFakes, ImageCredentials
from moldau.core.config.definitions import ConfigConflict, ConfigError
from moldau.core.config.listener_security import JAAS_CONFIG, ListenerSecurity
from moldau.security.jaas import InvalidJaasConfig, JaasPasswords, LoginModule, login_module
from moldau.security.sasl.login import LoginSettings
from moldau.security.sasl.mechanism import GSSAPI, OAUTHBEARER, PLAIN, SaslServer
from moldau.security.sasl.plain import PlainServer
from moldau.security.sasl.scram.credential import ScramMechanism
from moldau.security.sasl.scram.server import ScramServer

if TYPE_CHECKING:
    from moldau.node.securing.kerberos import KerberosListener
    from moldau.node.securing.token_keys import TokenKeys

NONCE_BYTES = 24
MS = 1_000
_SCRAM = {each.mechanism_name: each for each in ScramMechanism}
_URL = "sasl.oauthbearer.jwks.endpoint.url"
_REFRESH = "sasl.oauthbearer.jwks.endpoint.refresh.ms"
_BACKOFF = "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"
_BACKOFF_MAX = "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"


def check_logins(security: ListenerSecurity) -> None:
    """ConfigError for what no login can work with."""
    for mechanism in security.mechanisms:
        if mechanism == OAUTHBEARER:
            _check_keys(security)
        if mechanism == GSSAPI:
            _kerberos(security)
        module = _module(security, mechanism)
        if mechanism == PLAIN and (module is None or not module.users):
            key = security.key_of(JAAS_CONFIG, PLAIN)
            raise ConfigConflict(key, None, f'{key}: nobody could log in: it has no user_<name>="<password>"')


def logins(
    security: ListenerSecurity, services: Services, in_threads: Mapping[str, Checks], running: AsyncExitStack
) -> Logins:
    mechanisms = {mechanism: _server(security, mechanism, services, running) for mechanism in security.mechanisms}
    settings = LoginSettings(
        mechanisms,
        {mechanism: security.int("connections.max.reauth.ms", mechanism) for mechanism in mechanisms},
        security.int("sasl.server.max.receive.size"),
    )
    return Logins(
        settings=settings,
        clock=services.clock,
        failure_delay_s=services.config.int("connection.failed.authentication.delay.ms") / MS,
        in_threads=in_threads,
    )


def _server(
    security: ListenerSecurity, mechanism: str, services: Services, running: AsyncExitStack
) -> Callable[[], SaslServer]:
    if mechanism == OAUTHBEARER:
        return _token_server(security, running)
    if mechanism == GSSAPI:
        return _kerberos(security).begin
    if mechanism in _SCRAM:
        scram = _SCRAM[mechanism]
        credentials = ImageCredentials(lambda: services.controller.image)
        fakes = CurrentFakes(lambda: services.controller.image)
        return lambda: ScramServer(
            scram, credentials, fakes(), secrets.token_urlsafe(NONCE_BYTES), services.delegation_tokens
        )
    module = _module(security, PLAIN)
    assert module is not None, "a start without PLAIN's users is refused"
    plain = PlainServer(JaasPasswords(module))
    return lambda: plain


def _module(security: ListenerSecurity, mechanism: str) -> LoginModule | None:
    value = security.text(JAAS_CONFIG, mechanism)
    if value is None:
        return None
    try:
        return login_module(value, mechanism)
    except InvalidJaasConfig as wrong:
        key = security.key_of(JAAS_CONFIG, mechanism)
        raise ConfigError(key, "[hidden]", str(wrong)) from None


def _kerberos(security: ListenerSecurity) -> KerberosListener:
    from moldau.node.securing.kerberos import KerberosListener

    return KerberosListener(security)


def _token_server(security: ListenerSecurity, running: AsyncExitStack) -> Callable[[], SaslServer]:
    # Imported where tokens are taken: what checks signatures takes longer to load than a broker to start.
    from moldau.security.sasl.oauthbearer.server import OAuthBearerServer

    keys = _keys(security)
    fetching = asyncio.get_running_loop().create_task(keys.run())
    running.callback(fetching.cancel)
    server = OAuthBearerServer(keys)
    return lambda: server


def _keys(security: ListenerSecurity) -> TokenKeys:
    from moldau.node.securing.token_keys import REFRESH_S_MIN, RETRY_S_MIN, TokenKeys
    from moldau.security.sasl.oauthbearer.token import ClaimRules

    def text(key: str) -> str | None:
        return security.text(key, OAUTHBEARER)

    def seconds(key: str) -> float:
        return security.int(key, OAUTHBEARER) / MS

    audiences = security.value("sasl.oauthbearer.expected.audience", OAUTHBEARER)
    assert isinstance(audiences, tuple)
    rules = ClaimRules(
        audiences=frozenset(audiences),
        issuer=text("sasl.oauthbearer.expected.issuer") or None,
        clock_skew_ms=security.int("sasl.oauthbearer.clock.skew.seconds", OAUTHBEARER) * MS,
        scope_claim=text("sasl.oauthbearer.scope.claim.name") or "scope",
        sub_claim=text("sasl.oauthbearer.sub.claim.name") or "sub",
    )
    backoff = (max(RETRY_S_MIN, seconds(_BACKOFF)), max(RETRY_S_MIN, seconds(_BACKOFF_MAX)))
    return TokenKeys(
        text(_URL) or "",
        rules,
        refresh_s=max(REFRESH_S_MIN, seconds(_REFRESH)),
        backoff_s=backoff,
    )


def _check_keys(security: ListenerSecurity) -> None:
    from moldau.node.securing.token_keys import NoKeys, fetch_validator, is_url
    from moldau.security.sasl.oauthbearer.token import ClaimRules

    key, url = security.key_of(_URL, OAUTHBEARER), security.text(_URL, OAUTHBEARER) or ""
    if not is_url(url):
        raise ConfigError(key, url, "an https: or file: URL of a JSON Web Key Set")
    for name, least in ((_REFRESH, 1), (_BACKOFF, 0), (_BACKOFF_MAX, 0)):  # as Apache Kafka's
        if (found := security.int(name, OAUTHBEARER)) < least:
            raise ConfigError(security.key_of(name, OAUTHBEARER), found, f"Value must be at least {least}")
    if url.startswith("file:"):  # what is on another host may come later
        try:
            fetch_validator(url, ClaimRules())
        except NoKeys as wrong:
            raise ConfigConflict(key, url, f"{key}: {wrong}") from None
