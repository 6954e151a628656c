"""OAUTHBEARER, the server's half: one token that is valid, or a refusal that the client has to acknowledge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from moldau.security.sasl.mechanism import Challenge, SaslAuthenticationError, Success
from moldau.security.sasl.oauthbearer.messages import read_client_initial_response, write_error
from moldau.security.sasl.oauthbearer.token import BearerToken, InvalidToken


class TokenValidator(Protocol):
    def validate(self, token: str, now_ms: int) -> BearerToken:
        """InvalidToken, with the reason, if it is none that this broker takes."""
        ...


@dataclass(frozen=True, slots=True)
class OAuthBearerServer:
    validator: TokenValidator

    def evaluate(self, response: bytes, now_ms: int) -> Challenge | Success:
        first = read_client_initial_response(response)
        try:
            token = self.validator.validate(first.token, now_ms)
        except InvalidToken as wrong:
            error = write_error("invalid_token")
            return Challenge(error, OAuthBearerRefusal(error.decode(), f"Could not validate the access token: {wrong}"))
        if first.authzid not in ("", token.principal):
            raise SaslAuthenticationError(
                f"Authentication failed: Client requested an authorization id ({first.authzid}) that is different from "
                f"the token's principal name ({token.principal})"
            )
        return Success(token.principal, credential_expires_ms=token.expires_ms, extensions=first.extensions)


@dataclass(frozen=True, slots=True)
class OAuthBearerRefusal:
    """After a refusal: whatever the client says, the exchange is over."""

    error: str
    reason: str
    """Not told: it may help whoever forges tokens."""

    def evaluate(self, response: bytes, now_ms: int) -> Challenge | Success:  # noqa: ARG002
        raise SaslAuthenticationError(self.error, self.reason)
