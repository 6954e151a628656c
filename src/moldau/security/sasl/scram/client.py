"""SCRAM, the client's half: a proof that the password is known, and the check that the server knows its share."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from moldau.security.sasl.mechanism import Response, SaslError, expect_no_challenge
from moldau.security.sasl.saslname import to_saslname
from moldau.security.sasl.scram.credential import ITERATIONS_MAX, ITERATIONS_MIN, ScramMechanism
from moldau.security.sasl.scram.keys import client_key, salted_password, server_key, signature, stored_key, xor
from moldau.security.sasl.scram.messages import TOKEN_AUTH, read_server_final, read_server_first, to_base64

GS2_HEADER = "n,,"


@dataclass(frozen=True, slots=True)
class ScramClient:
    """Before anything was said."""

    mechanism: ScramMechanism
    user: str
    password: str = field(repr=False)
    nonce: str = field(repr=False)
    """Random and new for each exchange: this side's share of it."""
    is_by_token: bool = False
    """User and password are a delegation token's id and HMAC."""

    def evaluate(self, challenge: bytes) -> Response | None:
        expect_no_challenge(challenge)
        bare = f"n={to_saslname(self.user)},r={self.nonce}"
        if self.is_by_token:
            bare += f",{TOKEN_AUTH}=true"
        return Response((GS2_HEADER + bare).encode(), ScramClientProof(self, bare))


@dataclass(frozen=True, slots=True)
class ScramClientProof:
    """Before the server's salt."""

    login: ScramClient
    bare: str

    def evaluate(self, challenge: bytes) -> Response | None:
        mechanism = self.login.mechanism
        first = read_server_first(challenge)
        if not first.nonce.startswith(self.login.nonce) or first.nonce == self.login.nonce:
            raise SaslError("Invalid server nonce: does not start with client nonce, or adds nothing to it")
        # Fewer make the password easy to guess from the proof; more let a server keep this side computing.
        if not ITERATIONS_MIN <= first.iterations <= ITERATIONS_MAX:
            raise SaslError(f"{first.iterations} iterations; {ITERATIONS_MIN} to {ITERATIONS_MAX} are allowed")
        salted = salted_password(mechanism, self.login.password, first.salt, first.iterations)
        without_proof = f"c={to_base64(GS2_HEADER.encode())},r={first.nonce}"
        auth_message = b",".join((self.bare.encode(), challenge, without_proof.encode()))
        key = client_key(mechanism, salted)
        proof = xor(key, signature(mechanism, stored_key(mechanism, key), auth_message))
        verifier = signature(mechanism, server_key(mechanism, salted), auth_message)
        return Response(f"{without_proof},p={to_base64(proof)}".encode(), ScramClientVerification(verifier))


@dataclass(frozen=True, slots=True)
class ScramClientVerification:
    """Before the server's signature."""

    signature: bytes = field(repr=False)

    def evaluate(self, challenge: bytes) -> Response | None:
        if not hmac.compare_digest(read_server_final(challenge), self.signature):
            raise SaslError("Invalid server signature in server final message")
        return None
