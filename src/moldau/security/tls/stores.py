"""Key stores and trust stores by Kafka's rules: PEM in files and in the configuration itself, and PKCS12.

Whatever is wrong is a TlsConfigError that names the key to change. Passwords and keys are in no message, and no
exception of a library is chained to one, for such exceptions may quote what they were given.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moldau.core.limits import MIB
from moldau.security.tls import pem
from moldau.security.tls.certificates import Certificate, read_certificate
from moldau.security.tls.der import InvalidDer
from moldau.security.tls.settings import JKS, PEM, PKCS12, TlsConfigError, TlsSettings

if TYPE_CHECKING:  # it takes longer to load than a broker takes to start, and only PKCS12 needs it
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

STORE_BYTES_MAX = 8 * MIB  # all authorities that browsers trust are a quarter of a megabyte
_JKS_MAGICS = (bytes.fromhex("feedfeed"), bytes.fromhex("cececece"))

_TYPE, _LOCATION, _PASSWORD = "ssl.keystore.type", "ssl.keystore.location", "ssl.keystore.password"
_KEY, _KEY_PASSWORD, _CHAIN = "ssl.keystore.key", "ssl.key.password", "ssl.keystore.certificate.chain"
_TRUST_TYPE, _TRUST_LOCATION = "ssl.truststore.type", "ssl.truststore.location"
_TRUST_PASSWORD, _TRUST_CERTIFICATES = "ssl.truststore.password", "ssl.truststore.certificates"


@dataclass(frozen=True, slots=True)
class KeyStore:
    key: str = field(repr=False)
    """PEM; encrypted if it was."""
    is_encrypted: bool
    chain: tuple[Certificate, ...]
    """The owner's certificate first."""
    key_from: str
    """The configuration key that the private key came by, for messages."""


@dataclass(frozen=True, slots=True)
class TrustStore:
    certificates: tuple[Certificate, ...]


def load_keystore(settings: TlsSettings) -> KeyStore | None:
    """None if nothing is set, as in a client that has no certificate. Reads files."""
    kind = _store_type(settings.keystore_type, _TYPE)
    if settings.keystore_key is not None or settings.keystore_certificate_chain is not None:
        return _inline_keystore(settings, kind)
    location = settings.keystore_location
    if location is None:
        if settings.keystore_password is not None:
            raise TlsConfigError(_PASSWORD, "set, but ssl.keystore.location is not")
        return None
    content = _read(location, _LOCATION)
    if kind == PEM:
        if settings.keystore_password is not None:
            raise TlsConfigError(_PASSWORD, "not for PEM, whose key may have a password of its own: ssl.key.password")
        found = _blocks(_text(content, _LOCATION, location), _LOCATION)
        return _pem_keystore(found, found, key_from=_LOCATION, chain_from=_LOCATION)
    _refuse_others(content, location, _LOCATION, kind)
    return _pkcs12_keystore(content, settings, location)


def load_truststore(settings: TlsSettings) -> TrustStore | None:
    """None if nothing is set: then the system's authorities count, for a client. Reads files."""
    kind, location = _store_type(settings.truststore_type, _TRUST_TYPE), settings.truststore_location
    password, inline = settings.truststore_password, settings.truststore_certificates
    if inline is not None:
        if kind != PEM:
            raise TlsConfigError(_TRUST_CERTIFICATES, f"needs {_TRUST_TYPE}=PEM, which is {settings.truststore_type}")
        if location is not None:
            raise TlsConfigError(_TRUST_CERTIFICATES, f"set, and {_TRUST_LOCATION} too; remove one of them")
        return TrustStore(_certificates(_blocks(inline, _TRUST_CERTIFICATES), _TRUST_CERTIFICATES))
    if location is None:
        if password is not None:
            raise TlsConfigError(_TRUST_PASSWORD, f"set, but {_TRUST_LOCATION} is not")
        return None
    content = _read(location, _TRUST_LOCATION)
    if kind == PEM:
        if password is not None:
            raise TlsConfigError(_TRUST_PASSWORD, "not for PEM, which has none; remove it")
        text = _text(content, _TRUST_LOCATION, location)
        return TrustStore(_certificates(_blocks(text, _TRUST_LOCATION), _TRUST_LOCATION))
    _refuse_others(content, location, _TRUST_LOCATION, kind)
    return _pkcs12_truststore(content, password, location)


def _store_type(given: str, key: str) -> str:
    kind = given.upper()
    if kind not in (PEM, PKCS12, JKS):
        raise TlsConfigError(key, f"{given!r} is not supported; use PEM or PKCS12")
    return kind


def _refuse_others(content: bytes, location: str, key: str, kind: str) -> None:
    """By what is in the file: Java reads PKCS12 under either name, and so do users of Kafka's default, JKS."""
    if content.lstrip().startswith(b"-----BEGIN"):
        of_type = key.removesuffix("location") + "type"
        default = ", Kafka's default" if kind == JKS else ""
        raise TlsConfigError(of_type, f"{kind}{default}, and {location} is PEM; set {of_type}=PEM")
    if content.startswith(_JKS_MAGICS):
        made = os.path.splitext(location)[0] + ".p12"
        store = key.removesuffix(".location")
        raise TlsConfigError(
            key,
            f"{location} is a JKS store, which only Java reads. Convert it with `keytool -importkeystore -srckeystore "
            f"{location} -destkeystore {made} -deststoretype PKCS12`, and set {store}.type=PKCS12 and {key}={made}",
        )


def _inline_keystore(settings: TlsSettings, kind: str) -> KeyStore:
    key, chain = settings.keystore_key, settings.keystore_certificate_chain
    if key is None:
        raise TlsConfigError(_CHAIN, f"set, but {_KEY} is not")
    if kind != PEM:
        raise TlsConfigError(_KEY, f"needs {_TYPE}=PEM, which is {settings.keystore_type}")
    if chain is None:
        raise TlsConfigError(_KEY, f"set, but {_CHAIN} is not")
    if settings.keystore_location is not None:
        raise TlsConfigError(_KEY, f"set, and {_LOCATION} too; remove one of them")
    if settings.keystore_password is not None:
        raise TlsConfigError(_PASSWORD, "not for PEM, whose key may have a password of its own: ssl.key.password")
    return _pem_keystore(_blocks(key, _KEY), _blocks(chain, _CHAIN), key_from=_KEY, chain_from=_CHAIN)


def _pem_keystore(keys: list[pem.Block], chain: list[pem.Block], *, key_from: str, chain_from: str) -> KeyStore:
    found = [block for block in keys if block.is_key]
    if len(found) != 1:
        raise TlsConfigError(key_from, f"{len(found) or 'no'} private keys in PEM; one is needed (BEGIN PRIVATE KEY)")
    try:
        text = found[0].text()
    except pem.InvalidPem as wrong:
        raise TlsConfigError(key_from, str(wrong)) from None
    return KeyStore(text, found[0].is_encrypted, _certificates(chain, chain_from), key_from)


def _certificates(found: list[pem.Block], key: str) -> tuple[Certificate, ...]:
    try:
        certificates = tuple(read_certificate(block.der()) for block in found if block.is_certificate)
    except (pem.InvalidPem, InvalidDer) as wrong:
        raise TlsConfigError(key, f"a certificate that can't be read: {wrong}") from None
    if not certificates:
        raise TlsConfigError(key, "no certificate in PEM (BEGIN CERTIFICATE)")
    return certificates


def _blocks(text: str, key: str) -> list[pem.Block]:
    found = pem.blocks(text)
    if not found:
        raise TlsConfigError(key, "no PEM: there is no line that begins with -----BEGIN")
    return found


def _pkcs12_keystore(content: bytes, settings: TlsSettings, location: str) -> KeyStore:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    password = settings.keystore_password
    if password is None:
        raise TlsConfigError(_PASSWORD, f"not set, and {_LOCATION} is a PKCS12 store")
    if settings.key_password not in (None, password):
        raise TlsConfigError(
            _KEY_PASSWORD, f"a PKCS12 store has one password; remove it, or make it that of {_PASSWORD}"
        )
    key, certificates = _open_pkcs12(content, password, location, _LOCATION, _PASSWORD)
    if key is None:
        raise TlsConfigError(_LOCATION, f"{location} holds no private key")
    if not certificates:
        raise TlsConfigError(_LOCATION, f"{location} holds no certificate for its private key")
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return KeyStore(text, False, certificates, _LOCATION)


def _pkcs12_truststore(content: bytes, password: str | None, location: str) -> TrustStore:
    _, certificates = _open_pkcs12(content, password, location, _TRUST_LOCATION, _TRUST_PASSWORD)
    if not certificates:
        raise TlsConfigError(_TRUST_LOCATION, f"{location} holds no certificate")
    return TrustStore(certificates)


def _open_pkcs12(
    content: bytes, password: str | None, location: str, key: str, password_key: str
) -> tuple[PrivateKeyTypes | None, tuple[Certificate, ...]]:
    """The private key, if there is one, and the certificates, its own first."""
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

    if not content.startswith(b"\x30"):
        raise TlsConfigError(key, f"{location} is no PKCS12 store")
    try:
        store = pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except ValueError as wrong:
        if "password" in str(wrong).lower() or "mac" in str(wrong).lower():
            what = "not set" if password is None else "wrong"
            raise TlsConfigError(password_key, f"{what}, or {location} is damaged") from None
        raise TlsConfigError(key, f"{location} can't be read as PKCS12") from None
    held = [one for one in (store.cert, *store.additional_certs) if one is not None]
    try:
        certificates = tuple(read_certificate(one.certificate.public_bytes(Encoding.DER)) for one in held)
    except (InvalidDer, ValueError):
        raise TlsConfigError(key, f"{location} holds a certificate that can't be read") from None
    return store.key, certificates


def _read(location: str, key: str) -> bytes:
    """A regular file: a pipe of that name would hold up the start."""
    try:
        descriptor = os.open(location, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise TlsConfigError(key, f"{location} is not a file")
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(STORE_BYTES_MAX + 1)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as wrong:
        raise TlsConfigError(key, f"{location}: {getattr(wrong, 'strerror', None) or wrong}") from None
    if not content:
        raise TlsConfigError(key, f"{location} is empty")
    if len(content) > STORE_BYTES_MAX:
        raise TlsConfigError(key, f"{location} has more than {STORE_BYTES_MAX} bytes, too many for certificates")
    return content


def _text(content: bytes, key: str, location: str) -> str:
    if b"-----BEGIN" not in content:
        kind = "JKS" if content.startswith(_JKS_MAGICS) else "PKCS12" if content.startswith(b"\x30") else ""
        hint = f"; it looks like {kind}" if kind else ""
        raise TlsConfigError(key, f"{location} is no PEM{hint}")
    return content.decode("utf-8", "replace")
