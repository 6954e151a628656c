"""Making certificates: an authority of one's own, and what it signs for brokers and clients.

This module loads `cryptography`, which takes longer than a broker's start: import it where a certificate is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from moldau.core.host_names import is_certain_name
from moldau.security.tls.certificates import InvalidRequest

P256, RSA2048, RSA4096 = "P-256", "RSA-2048", "RSA-4096"
KEY_KINDS = (P256, RSA2048, RSA4096)
AUTHORITY_DAYS = 3_650
LEAF_DAYS = 397  # what browsers accept; 825 is the most that Apple's systems do for authorities of one's own
LEAF_DAYS_MAX = 825
_BACKDATED = timedelta(hours=1)  # for machines whose clocks are behind
_NAME_CHARS_MAX = 64  # of a common name, in X.509

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate with its key, and the authority that signed it, if it is not its own."""

    key: PrivateKey = field(repr=False)
    certificate: x509.Certificate
    authority: x509.Certificate | None = None

    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def pkcs12(self, password: str) -> bytes:
        name = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        alias = str(name[0].value).lower() if name else "moldau"
        chain = [] if self.authority is None else [self.authority]
        return pkcs12.serialize_key_and_certificates(
            alias.encode(), self.key, self.certificate, chain, BestAvailableEncryption(password.encode())
        )


def new_key(kind: str = P256) -> PrivateKey:
    if kind == P256:
        return ec.generate_private_key(ec.SECP256R1())
    return rsa.generate_private_key(65_537, {RSA2048: 2_048, RSA4096: 4_096}[kind])


def new_authority(*, name: str, now: datetime, days: int = AUTHORITY_DAYS, key_kind: str = P256) -> Identity:
    key, subject = new_key(key_kind), _name(name)
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        _builder(key, subject, now, days)
        .issuer_name(subject)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    )
    return Identity(key, builder.sign(key, hashes.SHA256()))


def new_server(
    authority: Identity, *, hosts: Sequence[str], now: datetime, days: int = LEAF_DAYS, key: PrivateKey | None = None
) -> Identity:
    """For the names and addresses that clients connect to; the first names it. Brokers are each other's clients."""
    key, first = key or new_key(), hosts[0]
    name = first if len(first) <= _NAME_CHARS_MAX else first.partition(".")[0]
    names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
    uses = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    builder = _leaf_builder(authority, _name(name), now, days, key).add_extension(uses, critical=False)
    return _signed(builder.add_extension(names, critical=False), authority, key)


def new_client(
    authority: Identity, *, name: str, now: datetime, days: int = LEAF_DAYS, key: PrivateKey | None = None
) -> Identity:
    key, uses = key or new_key(), x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    builder = _leaf_builder(authority, _name(name), now, days, key).add_extension(uses, critical=False)
    return _signed(builder, authority, key)


def key_like(key: PrivateKey) -> PrivateKey:
    """A new one of the same kind."""
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return ec.generate_private_key(key.curve)
    return rsa.generate_private_key(65_537, key.key_size)


def load_identity(key_pem: bytes, certificates_pem: bytes) -> Identity:
    """The key, and whichever certificate is its own. Raises InvalidRequest."""
    try:
        key = load_pem_private_key(key_pem, password=None)
        certificates = x509.load_pem_x509_certificates(certificates_pem)
    except (TypeError, ValueError):
        raise InvalidRequest("a key or a certificate that can't be read, or a key that has a password") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise InvalidRequest("a key that is neither RSA nor of an elliptic curve")
    own = [one for one in certificates if one.public_key() == key.public_key()]
    if not own:
        raise InvalidRequest("the key does not belong to the certificate")
    return Identity(key, own[0])


def renewed(old: x509.Certificate, authority: Identity, *, now: datetime, days: int, key: PrivateKey) -> Identity:
    """The same names and uses for another span of time."""
    kept = (x509.SubjectAlternativeName, x509.ExtendedKeyUsage)
    uses = [extension for extension in old.extensions if isinstance(extension.value, kept)]
    builder = _leaf_builder(authority, old.subject, now, days, key)
    for extension in uses:
        builder = builder.add_extension(extension.value, critical=extension.critical)
    return _signed(builder, authority, key)


def _signed(builder: x509.CertificateBuilder, authority: Identity, key: PrivateKey) -> Identity:
    return Identity(key, builder.sign(authority.key, hashes.SHA256()), authority.certificate)


def _leaf_builder(
    authority: Identity, subject: x509.Name, now: datetime, days: int, key: PrivateKey
) -> x509.CertificateBuilder:
    if days > LEAF_DAYS_MAX:
        raise InvalidRequest(f"{days} days; clients accept {LEAF_DAYS_MAX} at most")
    if now + timedelta(days=days) > authority.certificate.not_valid_after_utc:
        ends = authority.certificate.not_valid_after_utc.astimezone(UTC)
        raise InvalidRequest(f"the authority's own certificate ends before, on {ends:%Y-%m-%d}; make a new authority")
    usage = x509.KeyUsage(
        digital_signature=True,
        key_encipherment=isinstance(key, rsa.RSAPrivateKey),
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    signed_by = authority.key.public_key()
    return (
        _builder(key, subject, now, days)
        .issuer_name(authority.certificate.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signed_by), critical=False)
    )


def _builder(key: PrivateKey, subject: x509.Name, now: datetime, days: int) -> x509.CertificateBuilder:
    if days < 1:
        raise InvalidRequest(f"{days} days; at least one is needed")
    try:
        ends = now + timedelta(days=days)
    except OverflowError:
        raise InvalidRequest(f"{days} days; the years of a certificate end with 9999") from None
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    if not 0 < len(common_name.encode()) <= _NAME_CHARS_MAX or not common_name.isprintable():
        raise InvalidRequest(f"{common_name!r} is no name of 1 to {_NAME_CHARS_MAX} printable characters")
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host.strip("[]")))
    except ValueError:
        pass
    name = host.removeprefix("*.")
    if not is_certain_name(name):
        raise InvalidRequest(f"{host!r} is no host: one name or one address, without a port and without https://")
    return x509.DNSName(host.removesuffix(name) + name.encode("idna").decode())
