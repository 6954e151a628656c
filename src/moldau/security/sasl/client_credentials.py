"""What a client logs in with, from the login module of its `sasl.jaas.config`."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from typing import Final

from moldau.security.jaas import InvalidJaasConfig, LoginModule
from moldau.security.sasl.client_login import ClientCredentials, LoginFailed
from moldau.security.sasl.kerberos.library import Initiator, KerberosUnusable
from moldau.security.sasl.mechanism import (
    GSSAPI,
    OAUTHBEARER,
    PLAIN,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    SaslClient,
    SaslError,
)

CLIENT_MECHANISMS: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER, GSSAPI)
NONCE_BYTES: Final = 24


def jaas_credentials(
    mechanism: str,
    module: LoginModule,
    *,
    bearer_token: Callable[[], str] | None = None,
    service_name: str | None = None,
    reads_key: bool = True,
) -> ClientCredentials:
    """InvalidJaasConfig if the module lacks what its mechanism needs.

    `bearer_token` is asked for each login. `service_name` is what the configuration says of Kerberos, whose key is
    looked for in its file if `reads_key`, which is nothing for an event loop.
    """
    if mechanism == GSSAPI:
        from moldau.security.sasl.kerberos.login_module import kerberos_login

        login = kerberos_login(module, service_name, is_initiator=True)
        return kerberos_credentials(Initiator.by_keytab(login.keytab), login.service_name, reads_key=reads_key)
    return client_credentials(
        mechanism,
        user=module.username,
        password=module.password,
        is_by_token=module.is_token_auth,
        bearer_token=bearer_token,
    )


def client_credentials(
    mechanism: str,
    *,
    user: str | None,
    password: str | None,
    is_by_token: bool = False,
    bearer_token: Callable[[], str] | None = None,
) -> ClientCredentials:
    """InvalidJaasConfig if something is missing that the mechanism needs."""
    if mechanism == OAUTHBEARER:
        if bearer_token is None:
            raise InvalidJaasConfig("OAUTHBEARER needs a token: set sasl.oauthbearer.token.endpoint.url")
        return ClientCredentials(mechanism, partial(_oauthbearer, bearer_token))
    if mechanism not in CLIENT_MECHANISMS:
        raise InvalidJaasConfig(f"a login by {mechanism} is unknown; expected one of {', '.join(CLIENT_MECHANISMS)}")
    if not user or not password:
        missing = "password" if user else "username"
        raise InvalidJaasConfig(f"{mechanism} logs in with username and password, and {missing} is not set")
    if mechanism == PLAIN:
        if "\0" in user or "\0" in password:
            raise InvalidJaasConfig("PLAIN's username and password can't have a NUL in them")
        return ClientCredentials(mechanism, partial(_plain, user, password))
    return ClientCredentials(mechanism, partial(_scram, mechanism, user, password, is_by_token))


def kerberos_credentials(initiator: Initiator, service_name: str, *, reads_key: bool = True) -> ClientCredentials:
    """InvalidJaasConfig if there is no library, or no key that could be used; without `reads_key` a login finds out."""
    try:
        if reads_key:
            initiator.check()
    except KerberosUnusable as wrong:
        raise InvalidJaasConfig(str(wrong)) from None
    return ClientCredentials(GSSAPI, partial(_gssapi, initiator, service_name), is_slow=True)


def _plain(user: str, password: str, _host: str) -> SaslClient:
    from moldau.security.sasl.plain import PlainClient

    return PlainClient(user, password)


def _scram(mechanism: str, user: str, password: str, is_by_token: bool, _host: str) -> SaslClient:
    from moldau.security.sasl.scram.client import ScramClient
    from moldau.security.sasl.scram.credential import ScramMechanism

    kind = next(each for each in ScramMechanism if each.mechanism_name == mechanism)
    return ScramClient(kind, user, password, secrets.token_urlsafe(NONCE_BYTES), is_by_token)


def _oauthbearer(bearer_token: Callable[[], str], _host: str) -> SaslClient:
    from moldau.security.sasl.oauthbearer.client import OAuthBearerClient

    try:
        return OAuthBearerClient(bearer_token())
    except OSError as wrong:
        raise LoginFailed(f"SASL OAUTHBEARER: the token can't be had: {wrong.strerror or 'no answer'}") from None


def _gssapi(initiator: Initiator, service_name: str, host: str) -> SaslClient:
    from moldau.security.sasl.kerberos.exchange import GssapiClient

    try:
        return GssapiClient(initiator.begin(service_name, host))
    except (SaslError, KerberosUnusable) as wrong:
        raise LoginFailed(f"SASL GSSAPI: {wrong}") from None
