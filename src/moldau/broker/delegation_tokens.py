"""What this broker's secret makes of the cluster's delegation tokens: their HMACs, and credentials to log in with.

A broker without `delegation.token.secret.key` loads nothing of this.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Callable, Mapping

from moldau.controller.image import ClusterImage
from moldau.controller.settings.scram_credentials import fake_credentials
from moldau.security.delegation_tokens import DelegationToken
from moldau.security.principals import USER_TYPE
from moldau.security.sasl.scram.credential import ITERATIONS_MIN, ScramCredential, ScramMechanism, TokenCredential
from moldau.security.sasl.scram.keys import make_credential

HASH = "sha512"


class DelegationTokens:
    """Of the image of the moment. What took long to compute is kept for as long as its token is there."""

    __slots__ = ("_by_hmac", "_credentials", "_image", "_secret", "_seen")

    def __init__(self, secret: str, image: Callable[[], ClusterImage]) -> None:
        self._secret = secret.encode()
        self._image = image
        self._seen: Mapping[str, DelegationToken] = {}
        self._by_hmac: dict[bytes, str] = {}
        self._credentials: dict[str, dict[tuple[ScramMechanism, bytes], ScramCredential]] = {}

    def __repr__(self) -> str:
        return f"DelegationTokens({len(self._seen)} seen)"

    def hmac(self, token_id: str) -> bytes:
        return hmac.digest(self._secret, token_id.encode(), HASH)

    def id_of(self, token_hmac: bytes) -> str | None:
        """The token whose HMAC this is; None if none of this secret has it."""
        self._follow()
        return self._by_hmac.get(token_hmac)

    def lookup(self, token_id: str, mechanism: ScramMechanism) -> TokenCredential | None:
        """For a login. Its first one with a token takes some milliseconds, as many as it takes the client."""
        token = self._follow().get(token_id)
        # A login is a user's. Kafka lets a token of Group:admins log in as User:admins, whom nobody asked about.
        if token is None or token.owner.kind != USER_TYPE:
            return None
        # The salt that a token would be given that does not exist, so that no challenge tells which ones do.
        salt = fake_credentials(self._image()).credential(token_id, mechanism).salt
        known = self._credentials.setdefault(token_id, {})
        credential = known.get((mechanism, salt))
        if credential is None:
            password = b64encode(self.hmac(token_id)).decode()
            credential = make_credential(mechanism, password, salt=salt, iterations=ITERATIONS_MIN)
            known[mechanism, salt] = credential
        return TokenCredential(token.owner.name, credential, min(token.expires_ms, token.max_ms))

    def _follow(self) -> Mapping[str, DelegationToken]:
        tokens, seen = self._image().delegation_tokens, self._seen
        if tokens is not seen:
            for token_id in seen.keys() - tokens.keys():
                del self._by_hmac[self.hmac(token_id)]
                self._credentials.pop(token_id, None)
            self._by_hmac |= {self.hmac(token_id): token_id for token_id in tokens.keys() - seen.keys()}
            self._seen = tokens
        return tokens
