"""`moldau certs show`: whose certificates are in a file, and how long they are valid."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.certs.files import read_file
from moldau.cli.failures import CommandFailed, UsageError

if TYPE_CHECKING:
    from cryptography import x509

COLUMNS = ("subject", "names", "issuer", "not_after", "days_left", "key")
_DAY_S = 86_400
_PEM = b"-----BEGIN "


def rows_of(path: Path, password: str | None, *, now: datetime) -> list[dict[str, object]]:
    content = read_file(path)
    certificates = list(_in_pem(content, path) if _PEM in content else _in_pkcs12(content, path, password))
    if not certificates:
        raise CommandFailed(f"{path} holds no certificate")
    return [_row(one, now) for one in certificates]


def _in_pem(content: bytes, path: Path) -> Iterator[x509.Certificate]:
    from cryptography import x509

    from moldau.security.tls import pem

    try:
        for block in pem.blocks(content.decode("utf-8", "replace")):
            if block.is_certificate:
                yield x509.load_der_x509_certificate(block.der())
    except ValueError as wrong:
        raise UsageError(f"{path} holds a certificate that can't be read: {wrong}") from None


def _in_pkcs12(content: bytes, path: Path, password: str | None) -> Iterator[x509.Certificate]:
    from cryptography.hazmat.primitives.serialization import pkcs12

    try:
        store = pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except ValueError:
        why = "give its password with --password-file" if password is None else "or the password is wrong"
        raise UsageError(f"{path} is neither PEM nor a PKCS12 store, {why}") from None
    return (one.certificate for one in (store.cert, *store.additional_certs) if one is not None)


def _row(certificate: x509.Certificate, now: datetime) -> dict[str, object]:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import Encoding

    from moldau.security.tls.certificates import read_certificate
    from moldau.security.tls.distinguished_names import rfc2253

    read = read_certificate(certificate.public_bytes(Encoding.DER))
    key, kind = certificate.public_key(), "other"
    if isinstance(key, rsa.RSAPublicKey):
        kind = f"RSA-{key.key_size}"
    elif isinstance(key, ec.EllipticCurvePublicKey):
        kind = {"secp256r1": "P-256"}.get(key.curve.name, key.curve.name)
    return {
        "subject": read.subject,
        "names": sorted(read.alternative_names),
        "issuer": rfc2253(certificate.issuer.public_bytes()),
        "not_before": certificate.not_valid_before_utc.strftime("%Y-%m-%d"),
        "not_after": certificate.not_valid_after_utc.strftime("%Y-%m-%d"),
        "days_left": int((read.not_after_s - now.timestamp()) // _DAY_S),
        "key": kind,
        "sha256": certificate.fingerprint(hashes.SHA256()).hex(":"),
    }
