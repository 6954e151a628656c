"""OAUTHBEARER, the client's half."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moldau.security.sasl.mechanism import Response, SaslError, expect_no_challenge
from moldau.security.sasl.oauthbearer.messages import (
    ACKNOWLEDGED,
    ClientInitialResponse,
    write_client_initial_response,
)

ERROR_CHARS_MAX = 1_000  # of a server's refusal, in our log


@dataclass(frozen=True, slots=True)
class OAuthBearerClient:
    token: str = field(repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict)

    def evaluate(self, challenge: bytes) -> Response | None:
        expect_no_challenge(challenge)
        first = ClientInitialResponse(self.token, extensions=self.extensions)
        return Response(write_client_initial_response(first), OAuthBearerClientVerdict())


@dataclass(frozen=True, slots=True)
class OAuthBearerClientVerdict:
    """Before the server's verdict: nothing if the token is taken, else JSON that says why not."""

    def evaluate(self, challenge: bytes) -> Response | None:
        if not challenge:
            return None
        return Response(ACKNOWLEDGED, OAuthBearerClientRefused(challenge.decode(errors="replace")[:ERROR_CHARS_MAX]))


@dataclass(frozen=True, slots=True)
class OAuthBearerClientRefused:
    error: str

    def evaluate(self, challenge: bytes) -> Response | None:  # noqa: ARG002
        raise SaslError(f"the server refused the token: {self.error}")
