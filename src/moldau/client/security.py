"""TLS and SASL of connections that are made without a client library, by librdkafka's settings.

What is not followed is left to librdkafka: other mechanisms, servers that nobody verifies, revoked certificates.
A process whose cluster is plain loads nothing of TLS and SASL.
"""

from __future__ import annotations

import os
import random
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

from moldau.client.connection import LoginRefused, NotAccepted
from moldau.core.clock import SystemClock

if TYPE_CHECKING:
    from moldau.security.sasl.client_login import Asking, Authenticated, ClientCredentials
    from moldau.security.sasl.oauthbearer.retrieval import TokenEndpoint
    from moldau.security.tls.contexts import LoadedTls
    from moldau.security.tls.settings import TlsSettings

# Pairs in order instead of a dictionary: clients are cached by them.
ClientSettings: TypeAlias = tuple[tuple[str, str], ...]

PLAINTEXT = "plaintext"
PROTOCOLS = (PLAINTEXT, "ssl", "sasl_plaintext", "sasl_ssl")
GSSAPI = "GSSAPI"
OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER, GSSAPI)
TOKEN_AUTH = "sasl.tokenauth"  # not librdkafka's, which logs in by no delegation token: "true" if this is what it is
FOLLOWED = {
    "security.protocol", "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem",
    "ssl.key.location", "ssl.key.pem", "ssl.key.password", "ssl.keystore.location", "ssl.keystore.password",
    "ssl.endpoint.identification.algorithm", "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password",
    "sasl.kerberos.service.name", "sasl.kerberos.principal", "sasl.kerberos.keytab",
    "sasl.oauthbearer.method", "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret", "sasl.oauthbearer.scope", "https.ca.location", "https.ca.pem",
    TOKEN_AUTH,
}  # fmt: skip
_PREFIXES = ("ssl.", "sasl.", "enable.ssl.", "https.")
_FILES = (
    *("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.keystore.location"),
    *("sasl.kerberos.keytab", "https.ca.location"),
)
CHECKS_NAMES = {"https": True, "none": False, "": False}
CLUSTERS_MAX = 4

Exchange = Callable[[bytes], memoryview]


def can_secure(settings: Mapping[str, str]) -> bool:
    """Whether all that the settings say of TLS and SASL is followed here."""
    protocol = settings.get("security.protocol", PLAINTEXT).lower()
    if protocol not in PROTOCOLS:
        return False
    if any(name.startswith(_PREFIXES) and name not in FOLLOWED for name in settings):
        return False
    if name_check(settings) not in CHECKS_NAMES:
        return False
    if protocol.startswith("sasl_") and not (_mechanism(settings) in MECHANISMS and _has_user(settings)):
        return False
    return protocol == PLAINTEXT or (_has_files(settings) and _can_be_made(settings))


def name_check(settings: Mapping[str, str]) -> str:
    """Whether a certificate has to be of the host that was asked for; what is not in CHECKS_NAMES says neither."""
    return settings.get("ssl.endpoint.identification.algorithm", "https").lower()


def _has_user(settings: Mapping[str, str]) -> bool:
    """For GSSAPI it is whoever the tickets or the key are for. A librdkafka that knows it needs no python-gssapi."""
    if _mechanism(settings) == GSSAPI:
        return find_spec("gssapi") is not None
    if _mechanism(settings) == OAUTHBEARER:
        return _has_issuer(settings)
    return bool(settings.get("sasl.username") and settings.get("sasl.password"))


def _has_issuer(settings: Mapping[str, str]) -> bool:
    """librdkafka's other method makes tokens that nobody signed; it has none for tokens in a file."""
    endpoint = _endpoint(settings)
    return endpoint.is_usable and (endpoint.is_file or settings.get("sasl.oauthbearer.method", "").lower() == "oidc")


def _has_files(settings: Mapping[str, str]) -> bool:
    """librdkafka also takes a folder of authorities, and says in its own words what is missing."""
    return all(os.path.isfile(settings[name]) for name in _FILES if name in settings)


def _can_be_made(settings: Mapping[str, str]) -> bool:
    """librdkafka takes stores of some more forms, as certificates with rules of trust in them."""
    try:
        security_of(tuple(settings.items()))
    except OSError:
        return False
    return True


def _mechanism(settings: Mapping[str, str]) -> str:
    return settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or ""


@dataclass(frozen=True, slots=True)
class ConnectionSecurity:
    """Of all connections to one cluster."""

    tls: Callable[[], LoadedTls] | None  # asked for each connection: a process may live longer than certificates do
    credentials: ClientCredentials | None

    def secured(self, plain: socket.socket, host: str) -> socket.socket:
        """OSError if the server is not who it should be."""
        if self.tls is None:
            return plain
        try:
            return self.tls().context.wrap_socket(plain, server_hostname=host)
        except ssl.SSLCertVerificationError as wrong:
            raise NotAccepted(f"TLS: the certificate of {host} is not accepted: {wrong.verify_message}") from None
        except (ssl.SSLError, ValueError) as wrong:
            raise OSError(f"TLS: {getattr(wrong, 'reason', None) or wrong}") from None

    def logged_in(self, client_id: str, exchange: Exchange, host: str) -> float:
        """When to log in again, by `time.monotonic`; `exchange` sends a frame and gives its answer. OSError."""
        if self.credentials is None:
            return float("inf")
        from moldau.security.sasl import client_login

        try:
            asking: Asking | Authenticated = client_login.begin_login(self.credentials, client_id=client_id, host=host)
            while isinstance(asking, client_login.Asking):
                asking = asking.answered(exchange(asking.frame))
        except client_login.LoginFailed as wrong:
            raise LoginRefused(str(wrong)) from None
        after_ms = asking.reauthenticate_after_ms(random.random())
        return float("inf") if after_ms is None else time.monotonic() + after_ms / 1_000


@lru_cache(maxsize=CLUSTERS_MAX)
def security_of(settings: ClientSettings) -> ConnectionSecurity | None:
    """None for plain connections. OSError for files that nothing can be made of."""
    given = dict(settings)
    protocol = given.get("security.protocol", PLAINTEXT).lower()
    if protocol == PLAINTEXT:
        return None
    tls = partial(_tls, given) if protocol.endswith("ssl") else None
    if tls is not None:
        tls()
    return ConnectionSecurity(tls, _credentials(given) if protocol.startswith("sasl_") else None)


def _credentials(given: Mapping[str, str]) -> ClientCredentials:
    from moldau.security.jaas import InvalidJaasConfig
    from moldau.security.sasl.client_credentials import client_credentials, kerberos_credentials
    from moldau.security.sasl.kerberos.library import Initiator

    user, password = given.get("sasl.username"), given.get("sasl.password")
    try:
        if _mechanism(given) == GSSAPI:
            # Without a key they are the tickets of kinit, whoever has them: so librdkafka takes them.
            keytab = given.get("sasl.kerberos.keytab")
            initiator = Initiator(given.get("sasl.kerberos.principal") if keytab else None, keytab)
            return kerberos_credentials(initiator, given.get("sasl.kerberos.service.name") or "kafka")
        if _mechanism(given) == OAUTHBEARER:
            return _by_bearer_tokens(given)
        is_by_token = given.get(TOKEN_AUTH) == "true"
        return client_credentials(_mechanism(given), user=user, password=password, is_by_token=is_by_token)
    except InvalidJaasConfig as wrong:
        raise OSError(str(wrong)) from None


def _by_bearer_tokens(given: Mapping[str, str]) -> ClientCredentials:
    from moldau.security.sasl.client_credentials import client_credentials
    from moldau.security.sasl.oauthbearer.retrieval import retriever_of

    endpoint = replace(_endpoint(given), authorities=_text(given, "https.ca"))
    return client_credentials(OAUTHBEARER, user=None, password=None, bearer_token=retriever_of(endpoint))


def _endpoint(given: Mapping[str, str]) -> TokenEndpoint:
    from moldau.security.sasl.oauthbearer.retrieval import TokenEndpoint

    return TokenEndpoint(
        given.get("sasl.oauthbearer.token.endpoint.url", ""),
        given.get("sasl.oauthbearer.client.id", ""),
        given.get("sasl.oauthbearer.client.secret", ""),
        given.get("sasl.oauthbearer.scope", ""),
    )


def _tls(given: Mapping[str, str]) -> LoadedTls:
    """Of what is in the files now. OSError if nothing can be made of it."""
    store = given.get("ssl.keystore.location")
    found = os.stat(store) if store else None
    return _loaded(_tls_settings(given), found and (found.st_ino, found.st_size, found.st_mtime_ns))


@lru_cache(maxsize=CLUSTERS_MAX)
def _loaded(settings: TlsSettings, _store: tuple[int, int, int] | None) -> LoadedTls:
    """Kept as long as texts and store are the same."""
    from moldau.security.tls.contexts import client_tls
    from moldau.security.tls.settings import TlsConfigError

    try:
        return client_tls(settings, now_s=SystemClock().now_ms() / 1_000)
    except TlsConfigError as wrong:
        raise OSError(str(wrong)) from None


def _tls_settings(given: Mapping[str, str]) -> TlsSettings:
    from moldau.security.tls.settings import PEM, PKCS12, TlsSettings

    found: dict[str, Any] = {"key_password": given.get("ssl.key.password")}
    # What says neither leaves it on: a slip of the pen must not have anybody's certificate accepted.
    found["endpoint_identification_algorithm"] = "https" if CHECKS_NAMES.get(name_check(given), True) else ""
    authorities = _text(given, "ssl.ca")
    if authorities is not None:
        found |= {"truststore_type": PEM, "truststore_certificates": authorities}
    certificate, key = _text(given, "ssl.certificate"), _text(given, "ssl.key")
    if certificate is not None or key is not None:
        found |= {"keystore_type": PEM, "keystore_certificate_chain": certificate, "keystore_key": key}
    elif "ssl.keystore.location" in given:
        found |= {
            "keystore_type": PKCS12,
            "keystore_location": given["ssl.keystore.location"],
            "keystore_password": given.get("ssl.keystore.password", ""),
        }
    return TlsSettings(**{name: value for name, value in found.items() if value is not None})


def _text(given: Mapping[str, str], name: str) -> str | None:
    if f"{name}.pem" in given:
        return given[f"{name}.pem"]
    location = given.get(f"{name}.location")
    if location is None:
        return None
    with open(location, encoding="utf-8", errors="replace") as file:
        return file.read()
