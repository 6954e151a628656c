"""DIGEST-MD5 (RFC 2831), the client's half: what ZooKeeper's servers have for users with passwords. Nothing of Kafka's.

MD5 is weak, and the RFC is historic: use it over TLS.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field

from moldau.security.sasl.mechanism import Response, SaslError, expect_no_challenge

DIGEST_MD5 = "DIGEST-MD5"
QOP = "auth"
NONCE_COUNT = "00000001"

_DIRECTIVE = re.compile(r'\s*([A-Za-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))\s*(?:,|\Z)')
CHALLENGE_BYTES_MAX = 2_048  # RFC 2831, section 2.1.1


@dataclass(frozen=True, slots=True)
class DigestMd5Client:
    user: str
    password: str = field(repr=False)
    service: str
    """The service and the server's name, as in zookeeper/zk-sasl-md5: a digest for one is none for another."""
    cnonce: str = field(repr=False)
    """Random and new for each exchange."""

    def evaluate(self, challenge: bytes) -> Response | None:
        expect_no_challenge(challenge)
        return Response(b"", _Proof(self))


@dataclass(frozen=True, slots=True)
class _Proof:
    """Before the server's nonce."""

    login: DigestMd5Client

    def evaluate(self, challenge: bytes) -> Response | None:
        told = _directives(challenge)
        if "nonce" not in told:
            raise SaslError("a challenge without a nonce")
        if QOP not in [each.strip() for each in told.get("qop", QOP).split(",")]:
            raise SaslError("the server wants more than authentication, which is not supported")
        login, nonce, realm = self.login, told["nonce"], told.get("realm", "")
        secret = hashlib.md5(_encoded(f"{login.user}:{realm}:{login.password}"), usedforsecurity=False).digest()
        a1 = _hashed(secret + f":{nonce}:{login.cnonce}".encode())
        response, expected = (self._digest(a1, nonce, a2) for a2 in ("AUTHENTICATE:", ":"))
        fields = {
            "charset": "utf-8",
            "username": _quoted(login.user),
            "realm": _quoted(realm),
            "nonce": _quoted(nonce),
            "nc": NONCE_COUNT,
            "cnonce": _quoted(login.cnonce),
            "digest-uri": _quoted(login.service),
            "response": response,
            "qop": QOP,
        }
        return Response(",".join(f"{name}={value}" for name, value in fields.items()).encode(), _Verdict(expected))

    def _digest(self, a1: str, nonce: str, method: str) -> str:
        a2 = _hashed(f"{method}{self.login.service}".encode())
        return _hashed(f"{a1}:{nonce}:{NONCE_COUNT}:{self.login.cnonce}:{QOP}:{a2}".encode())


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Before the server's proof that it knows the password, too."""

    expected: str = field(repr=False)

    def evaluate(self, challenge: bytes) -> Response | None:
        if not hmac.compare_digest(_directives(challenge).get("rspauth", "").encode(), self.expected.encode()):
            raise SaslError("the server does not know the password")
        return None


def _directives(challenge: bytes) -> dict[str, str]:
    if len(challenge) >= CHALLENGE_BYTES_MAX:
        raise SaslError(f"a challenge of {len(challenge)} bytes; less than {CHALLENGE_BYTES_MAX} are allowed")
    try:
        text = challenge.decode()
    except UnicodeDecodeError:
        raise SaslError("a challenge that is not UTF-8") from None
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _DIRECTIVE.match(text, at)
        if match is None:
            raise SaslError("a challenge that can't be read")
        value = match[3] if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])
        found.setdefault(match[1].lower(), value)
        at = match.end()
    return found


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _encoded(text: str) -> bytes:
    """The RFC's rule: hashed as ISO 8859-1 if that has all its characters."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _hashed(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()
