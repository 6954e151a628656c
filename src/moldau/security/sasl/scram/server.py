"""SCRAM, the server's half: a challenge from the user's credential, then the check of the client's proof.

A user who does not exist gets a challenge too, from a credential made of the name, and fails where a wrong password
does, so neither answers nor times tell who exists.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from moldau.security.sasl.mechanism import Challenge, SaslAuthenticationError, SaslError, Success
from moldau.security.sasl.scram.credential import (
    ITERATIONS_MIN,
    ScramCredential,
    ScramCredentials,
    ScramMechanism,
    TokenCredential,
    TokenCredentials,
)
from moldau.security.sasl.scram.keys import FakeCredentials, is_proof, signature
from moldau.security.sasl.scram.messages import ClientFirst, read_client_final, read_client_first, to_base64


@dataclass(frozen=True, slots=True)
class ScramServer:
    """Before the client's first message."""

    mechanism: ScramMechanism
    credentials: ScramCredentials
    fakes: FakeCredentials
    nonce: str = field(repr=False)
    """Random and new for each exchange: this side's share of it."""
    tokens: TokenCredentials | None = None
    """None where delegation tokens are not enabled: none is known then."""

    def evaluate(self, response: bytes, now_ms: int) -> Challenge | Success:
        first = read_client_first(response)
        # In this order as Kafka has it for users who exist; the answer is the same for those who do not.
        if first.authzid not in ("", first.user):
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        token = self._token(first, now_ms)
        known = token.credential if token else self._credential(first)
        fake = self.fakes.credential(first.user, self.mechanism)  # made in any case, for the same time
        credential = fake if known is None else known
        if credential.iterations < ITERATIONS_MIN:
            raise SaslError(f"{credential.iterations} iterations are less than the minimum {ITERATIONS_MIN}")
        nonce = first.nonce + self.nonce
        challenge = f"r={nonce},s={to_base64(credential.salt)},i={credential.iterations}"
        return Challenge(
            challenge.encode(),
            ScramServerFinal(
                mechanism=self.mechanism,
                first=first,
                challenge=challenge,
                nonce=nonce,
                credential=credential,
                is_known=known is not None,
                token=token,
            ),
        )

    def _credential(self, first: ClientFirst) -> ScramCredential | None:
        return None if first.is_by_token else self.credentials.lookup(first.user, self.mechanism)

    def _token(self, first: ClientFirst, now_ms: int) -> TokenCredential | None:
        if not first.is_by_token or self.tokens is None:
            return None
        token = self.tokens.lookup(first.user, self.mechanism)
        return token if token is not None and token.expires_ms > now_ms else None


@dataclass(frozen=True, slots=True)
class ScramServerFinal:
    """Before the client's proof."""

    mechanism: ScramMechanism
    first: ClientFirst
    challenge: str
    nonce: str = field(repr=False)
    credential: ScramCredential
    is_known: bool
    """False if the credential is made up; nothing proves knowledge of such a one, and it may not even if it did."""
    token: TokenCredential | None

    def evaluate(self, response: bytes, now_ms: int) -> Challenge | Success:  # noqa: ARG002
        final = read_client_final(response)
        if not hmac.compare_digest(final.nonce, self.nonce):
            raise SaslError("Invalid client nonce in the final client message.")
        if final.channel_binding != self.first.gs2_header.encode():
            raise SaslError("the channel binding is not the GS2 header of the first message")
        auth_message = f"{self.first.bare},{self.challenge},{final.without_proof}".encode()
        is_proven = is_proof(self.mechanism, self.credential, auth_message, final.proof)
        if not (is_proven and self.is_known):
            raise SaslError("Invalid client credentials" if self.is_known else "Invalid user credentials")
        verifier = signature(self.mechanism, self.credential.server_key, auth_message)
        return Success(
            self.first.user if self.token is None else self.token.owner,
            f"v={to_base64(verifier)}".encode(),
            is_by_token=self.token is not None,
            credential_expires_ms=None if self.token is None else self.token.expires_ms,
            extensions=self.first.extensions,
        )
