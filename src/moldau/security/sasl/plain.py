"""PLAIN (RFC 4616): user and password in one message, for connections that TLS protects."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Protocol

from moldau.security.sasl.mechanism import (
    PLAIN,
    Challenge,
    LastChallenge,
    Response,
    SaslAuthenticationError,
    Success,
    expect_no_challenge,
)

TOKENS = 3  # authorization id, user, password
NO_PASSWORD = ""  # of an unknown user; a client's password is never empty


class PlainPasswords(Protocol):
    """Who may log in by PLAIN."""

    def lookup(self, user: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class PlainServer:
    passwords: PlainPasswords

    def evaluate(self, response: bytes, now_ms: int) -> Challenge | Success:  # noqa: ARG002
        authzid, user, password = _read(response)
        if not user:
            raise SaslAuthenticationError("Authentication failed: username not specified")
        if not password:
            raise SaslAuthenticationError("Authentication failed: password not specified")
        if not _is_password(password, self.passwords.lookup(user)):
            raise SaslAuthenticationError("Authentication failed: Invalid username or password")
        if authzid not in ("", user):
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        return Success(user)


def _read(response: bytes) -> list[str]:
    try:
        tokens = response.decode().split("\0", TOKENS)
    except UnicodeDecodeError:
        raise SaslAuthenticationError("Invalid SASL/PLAIN response: expected UTF-8") from None
    if len(tokens) != TOKENS:
        # As Kafka counts: it stops after the first that is too many.
        raise SaslAuthenticationError(f"Invalid SASL/PLAIN response: expected {TOKENS} tokens, got {len(tokens)}")
    return tokens


def _is_password(given: str, expected: str | None) -> bool:
    """In a time that tells nothing: an unknown user's password is compared too, and lengths are hashed away."""
    texts = (given, NO_PASSWORD if expected is None else expected)
    digests = [hashlib.sha256(text.encode()).digest() for text in texts]
    return hmac.compare_digest(*digests)


@dataclass(frozen=True, slots=True)
class PlainClient:
    user: str
    password: str = field(repr=False)

    def evaluate(self, challenge: bytes) -> Response | None:
        expect_no_challenge(challenge)
        return Response(f"\0{self.user}\0{self.password}".encode(), LastChallenge(PLAIN))
