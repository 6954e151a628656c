"""What a SASL mechanism is to whoever runs a login: bytes in, bytes out, and at the end a user or an error.

A state of an exchange is a value. It takes the peer's token and gives the token to send back together with the state
that takes the next one, so a step that is out of order can't be written down. Neither half reads a clock or a socket.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

PLAIN = "PLAIN"
SCRAM_SHA_256 = "SCRAM-SHA-256"
SCRAM_SHA_512 = "SCRAM-SHA-512"
OAUTHBEARER = "OAUTHBEARER"
GSSAPI = "GSSAPI"


class SaslError(Exception):
    """The exchange failed. The text is for this side's log: it may say whether the user exists, and is never sent."""


class SaslAuthenticationError(SaslError):
    """The exchange failed, and the text is made to be sent to the client; `reason` is for this side's log."""

    def __init__(self, told: str, reason: str | None = None) -> None:
        self.told = told
        super().__init__(told if reason is None else reason)


@dataclass(frozen=True, slots=True)
class Challenge:
    """A server's token that the client has to answer, and the state that takes the answer."""

    token: bytes
    next: SaslServer


@dataclass(frozen=True, slots=True)
class Success:
    """The end of an exchange, with the last token for the client."""

    user: str
    token: bytes | None = b""
    """None where the client has spoken last, and waits for nothing if it sends bare tokens."""
    is_by_token: bool = False
    """Logged in with a delegation token, whose owner is the user."""
    credential_expires_ms: int | None = None
    """When the credential stops being valid; None for one that has no end."""
    extensions: Mapping[str, str] = field(default_factory=dict)


class SaslServer(Protocol):
    """A state of the server's half."""

    def evaluate(self, response: bytes, now_ms: int) -> Challenge | Success:
        """SaslError if the client's token is none, or proves nothing. `now_ms` is since the epoch."""
        ...


@dataclass(frozen=True, slots=True)
class Response:
    """A client's token, and the state that takes the server's answer."""

    token: bytes
    next: SaslClient


class SaslClient(Protocol):
    """A state of the client's half. The first one is given an empty challenge."""

    def evaluate(self, challenge: bytes) -> Response | None:
        """None once the exchange is complete; SaslError if the server is not who it should be, or refuses."""
        ...


@dataclass(frozen=True, slots=True)
class LastChallenge:
    """The client's half of a mechanism that has said all: the server has nothing to add."""

    mechanism: str

    def evaluate(self, challenge: bytes) -> Response | None:
        if challenge:
            raise SaslError(f"{self.mechanism}: the server sent {len(challenge)} bytes after the exchange was complete")
        return None


def expect_no_challenge(challenge: bytes) -> None:
    """The client speaks first in each mechanism here."""
    if challenge:
        raise SaslError("Expected empty challenge")
