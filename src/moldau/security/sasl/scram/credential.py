"""A user's SCRAM credential, and where the server's half finds one. Light: the cluster's metadata is made of these."""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

import msgspec

ITERATIONS_MIN = 4_096  # RFC 7677
ITERATIONS_MAX = 16_384  # Kafka's: a client has to compute that many hashes for each login


class ScramMechanism(IntEnum):
    """By the numbers that the protocol and the metadata use."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        return f"SCRAM-{self.hash_name.replace('sha', 'SHA-')}"

    @property
    def hash_name(self) -> str:
        """As hashlib calls it."""
        return "sha256" if self is ScramMechanism.SHA_256 else "sha512"

    @property
    def key_bytes(self) -> int:
        return 32 if self is ScramMechanism.SHA_256 else 64


class ScramCredential(msgspec.Struct, frozen=True, array_like=True):
    """What verifies a password without knowing it. Whoever has the keys can pretend to be the server."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"


class TokenCredential(msgspec.Struct, frozen=True):
    """A delegation token as a credential: its id is the user's name, its HMAC the password."""

    owner: str
    credential: ScramCredential
    expires_ms: int


class ScramCredentials(Protocol):
    def lookup(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None: ...


class TokenCredentials(Protocol):
    def lookup(self, token_id: str, mechanism: ScramMechanism) -> TokenCredential | None: ...
