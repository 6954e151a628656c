"""Cipher suites as Java, and so Kafka, names them, in the names that OpenSSL knows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ssl import OPENSSL_VERSION, PROTOCOL_TLS_SERVER, SSLContext, SSLError

from moldau.security.tls.settings import TlsConfigError

KEY = "ssl.cipher.suites"
TLS13 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
"""Those that OpenSSL offers by default, in its order of preference."""
_NOT_A_SUITE = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"  # how Java says that it renegotiates safely; its lists have it
_SUITE = re.compile(r"(?:TLS|SSL)_([A-Za-z0-9_]+)_WITH_([A-Z0-9_]+)")
_PARTS = (
    (re.compile(r"^RSA$"), ""),  # key exchange by RSA is not mentioned
    (re.compile(r"_(128|256)_CBC_SHA"), r"\1-SHA"),  # nor is the mode of a block cipher
    (re.compile(r"_POLY1305_SHA256$"), "-POLY1305"),
    (re.compile(r"_(128|256)_CCM_8$"), r"\1-CCM8"),
    (re.compile(r"_(128|256)_"), r"\1-"),
)


@dataclass(frozen=True, slots=True)
class Suites:
    """What a list allows: suites of TLS 1.2 for OpenSSL, in order, and those of TLS 1.3."""

    tls12: tuple[str, ...]
    tls13: frozenset[str]


def parse_suites(names: Sequence[str]) -> Suites | None:
    """None for an empty list: then OpenSSL's own selection counts. Raises TlsConfigError."""
    wanted = [name.strip() for name in names if name.strip() and name.strip() != _NOT_A_SUITE]
    if not wanted:
        return None
    older = [name for name in wanted if name not in TLS13]
    tls13 = frozenset(wanted) - frozenset(older)
    if tls13 and TLS13[0] not in tls13:
        # Python (before 3.15) can't take suites of TLS 1.3 off the offer, and this one is what a server then picks.
        raise TlsConfigError(KEY, f"suites of TLS 1.3 without {TLS13[0]} are not supported; add it")
    return Suites(tuple(_available(name) for name in older), tls13)


def openssl_name(name: str) -> str:
    """OpenSSL's name of a suite of TLS 1.2; a name of another form is taken for OpenSSL's own."""
    found = _SUITE.fullmatch(name)
    if found is None:
        return name
    exchange, cipher = found.groups()
    for pattern, replacement in _PARTS:
        exchange, cipher = pattern.sub(replacement, exchange), pattern.sub(replacement, cipher)
    return "-".join(part.replace("_", "-") for part in (exchange, cipher) if part)


def _available(name: str) -> str:
    translated = openssl_name(name)
    context = SSLContext(PROTOCOL_TLS_SERVER)
    try:
        context.set_ciphers(translated)
    except (SSLError, ValueError):  # the latter for characters that no name of one has
        found = False
    else:  # a word such as HIGH is no suite, but OpenSSL takes it
        found = translated in {each["name"] for each in context.get_ciphers()}
    if not found:
        raise TlsConfigError(KEY, f"{name!r} is no cipher suite of {OPENSSL_VERSION.rsplit(maxsplit=3)[0]}")
    return translated
