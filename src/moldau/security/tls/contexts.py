"""From settings to `ssl.SSLContext`: the half of a listener, and the half of whoever connects to one.

Files are read once, and OpenSSL gets what was read: a key that came inline or from PKCS12 is handed over in memory and
never written to a disk. What must be known later, to judge a change, is in the value that is returned.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from ssl import SSLContext, TLSVersion

from moldau.security.tls import pem
from moldau.security.tls.certificates import Certificate
from moldau.security.tls.cipher_suites import KEY as SUITES_KEY
from moldau.security.tls.cipher_suites import parse_suites
from moldau.security.tls.settings import NONE, PROTOCOLS, REQUESTED, REQUIRED, TlsConfigError, TlsSettings, naming_files
from moldau.security.tls.stores import KeyStore, TrustStore, load_keystore, load_truststore

PASSWORD_BYTES_MAX = 1_024  # OpenSSL's own limit
TICKETS = 1  # of a TLS 1.3 server for each connection: enough for a client that comes again

_VERSIONS = {"TLSv1.2": TLSVersion.TLSv1_2, "TLSv1.3": TLSVersion.TLSv1_3}
_CLIENT_AUTH = {NONE: ssl.CERT_NONE, REQUESTED: ssl.CERT_OPTIONAL, REQUIRED: ssl.CERT_REQUIRED}
_HTTPS = "https"
_MISMATCHES = frozenset({"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED"})


@dataclass(frozen=True, slots=True)
class LoadedTls:
    """A context, and what it was made of."""

    context: SSLContext
    tls13_suites: frozenset[str]
    """Those that may be negotiated; empty if all may. The session looks, for the context can't."""
    chain: tuple[Certificate, ...]
    has_truststore: bool
    warnings: tuple[str, ...]


def server_tls(settings: TlsSettings, *, now_s: float) -> LoadedTls:
    """For a listener. Raises TlsConfigError."""
    with naming_files(settings):
        return _server_tls(settings, now_s)


def _server_tls(settings: TlsSettings, now_s: float) -> LoadedTls:
    context = SSLContext(ssl.PROTOCOL_TLS_SERVER)
    keys, trust = load_keystore(settings), load_truststore(settings)
    if keys is None:
        raise TlsConfigError("ssl.keystore.location", "not set: a listener with TLS needs a key and a certificate")
    try:
        context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    except KeyError:
        allowed = ", ".join(_CLIENT_AUTH)
        raise TlsConfigError("ssl.client.auth", f"{settings.client_auth!r} is none of {allowed}") from None
    if trust is None and context.verify_mode is not ssl.CERT_NONE:
        # Java would trust every authority that browsers do, and whoever buys a certificate would be a client.
        what = f"not set, and ssl.client.auth={settings.client_auth} needs the authority of the clients' certificates"
        raise TlsConfigError("ssl.truststore.location", what)
    context.num_tickets = TICKETS
    return _loaded(context, settings, keys, trust, now_s)


def client_tls(settings: TlsSettings, *, now_s: float) -> LoadedTls:
    """For connections to brokers. Raises TlsConfigError."""
    with naming_files(settings):
        return _client_tls(settings, now_s)


def _client_tls(settings: TlsSettings, now_s: float) -> LoadedTls:
    context = SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    algorithm = (settings.endpoint_identification_algorithm or "").lower()
    if algorithm not in ("", _HTTPS):
        given = settings.endpoint_identification_algorithm
        raise TlsConfigError("ssl.endpoint.identification.algorithm", f"{given!r} is neither https nor empty")
    context.check_hostname = algorithm == _HTTPS
    keys, trust = load_keystore(settings), load_truststore(settings)
    if trust is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    return _loaded(context, settings, keys, trust, now_s)


def _loaded(
    context: SSLContext, settings: TlsSettings, keys: KeyStore | None, trust: TrustStore | None, now_s: float
) -> LoadedTls:
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    if trust is not None:
        # Whatever is in a trust store is trusted, as in Java, an authority between or a broker's own certificate too.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        _trust(context, trust, settings)
    if keys is not None:
        _use(context, keys, settings)
    tls13 = _choose(context, settings)
    chain = () if keys is None else keys.chain
    warnings = _expired("ssl.keystore", chain, now_s)
    if trust is not None:
        warnings += _expired("ssl.truststore", trust.certificates, now_s)
    return LoadedTls(context, tls13, chain, trust is not None, warnings)


def _choose(context: SSLContext, settings: TlsSettings) -> frozenset[str]:
    """Set protocol versions and suites; gives the suites of TLS 1.3 that a list allows."""
    key, wanted = "ssl.enabled.protocols", settings.enabled_protocols
    unknown = [name for name in wanted if name not in _VERSIONS]
    if unknown:
        raise TlsConfigError(key, f"{unknown[0]!r} is not supported; use {' and '.join(PROTOCOLS)}, or one of them")
    enabled = {_VERSIONS[name] for name in wanted or PROTOCOLS}
    suites = parse_suites(settings.cipher_suites)
    if suites is not None:
        # A version without a suite can't be spoken, which is how Java sees it too.
        enabled -= {TLSVersion.TLSv1_2} if not suites.tls12 else set()
        enabled -= {TLSVersion.TLSv1_3} if not suites.tls13 else set()
        if not enabled:
            raise TlsConfigError(SUITES_KEY, f"has no suite for {', '.join(wanted)} (ssl.enabled.protocols)")
        if suites.tls12:
            context.set_ciphers(":".join(suites.tls12))
    context.minimum_version, context.maximum_version = min(enabled), max(enabled)
    return frozenset() if suites is None else suites.tls13


def _trust(context: SSLContext, trust: TrustStore, settings: TlsSettings) -> None:
    key = "ssl.truststore." + ("certificates" if settings.truststore_certificates is not None else "location")
    try:
        context.load_verify_locations(cadata=b"".join({one.encoded: None for one in trust.certificates}))
    except ssl.SSLError as wrong:
        raise TlsConfigError(key, f"a certificate that OpenSSL can't read ({wrong.reason or 'no reason'})") from None


def _use(context: SSLContext, keys: KeyStore, settings: TlsSettings) -> None:
    password = (settings.key_password or "").encode()
    if keys.is_encrypted and not password:
        raise TlsConfigError("ssl.key.password", f"not set, and the private key of {keys.key_from} is encrypted")
    if len(password) > PASSWORD_BYTES_MAX:
        raise TlsConfigError("ssl.key.password", f"longer than {PASSWORD_BYTES_MAX} bytes")
    chain = "".join(pem.encoded("CERTIFICATE", one.encoded) for one in keys.chain)
    try:
        with _in_memory(chain) as chain_path, _in_memory(keys.key) as key_path:
            # A password is always given: OpenSSL would ask the terminal for one.
            context.load_cert_chain(chain_path, key_path, password=lambda: password)
    except ssl.SSLError as wrong:
        if wrong.reason in _MISMATCHES:
            what = f"the private key does not belong to the certificate of {keys.chain[0].subject or 'no name'}"
            raise TlsConfigError(keys.key_from, what) from None
        if wrong.reason is not None:
            what = f"OpenSSL refuses the key or its certificate ({wrong.reason.replace('_', ' ').lower()})"
            raise TlsConfigError(keys.key_from, what) from None
        if keys.is_encrypted:
            raise TlsConfigError("ssl.key.password", f"wrong for the private key of {keys.key_from}") from None
        raise TlsConfigError(keys.key_from, "holds a private key or certificate that OpenSSL can't read") from None


@contextmanager
def _in_memory(text: str) -> Iterator[str]:
    """A path that OpenSSL can open, to memory that is gone afterwards."""
    descriptor = os.memfd_create("moldau-tls", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _expired(store: str, certificates: Sequence[Certificate], now_s: float) -> tuple[str, ...]:
    late = [one for one in certificates if one.is_expired(now_s)]
    return tuple(f"{store}: the certificate of {one.subject} expired on {_day(one.not_after_s)}" for one in late)


def _day(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
