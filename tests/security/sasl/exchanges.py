"""A client's and a server's half brought together, without a network between them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from moldau.security.sasl.mechanism import Challenge, SaslClient, SaslServer, Success
from moldau.security.sasl.scram.credential import ScramCredential, ScramMechanism, TokenCredential
from moldau.security.sasl.scram.keys import FakeCredentials, make_credential

NOW_MS = 1_800_000_000_000
FAKES = FakeCredentials(b"a secret of the cluster")
SALT = b"1abc2def3ghi4jkl5mno6pqr7s"
PASSWORDS = {"alice": "alice-secret", "o=neil, bob": "p,=", "žofie": "heslo ž"}

made_credential = functools.cache(make_credential)  # thousands of hashes each


@dataclass(frozen=True, slots=True)
class Credentials:
    """Users with passwords, by every mechanism."""

    passwords: Mapping[str, str] = field(default_factory=lambda: PASSWORDS)
    iterations: int = 4096

    def lookup(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        password = self.passwords.get(user)
        if password is None:
            return None
        return made_credential(mechanism, password, salt=SALT, iterations=self.iterations)


@dataclass(frozen=True, slots=True)
class Tokens:
    """One delegation token of alice's."""

    expires_ms: int = NOW_MS + 60_000

    def lookup(self, token_id: str, mechanism: ScramMechanism) -> TokenCredential | None:
        if token_id != "token-1":
            return None
        credential = made_credential(mechanism, "hmac-of-the-token", salt=SALT, iterations=4096)
        return TokenCredential("alice", credential, self.expires_ms)


def run(client: SaslClient, server: SaslServer, now_ms: int = NOW_MS) -> Success:
    """The server's verdict, once the client is content with it too; SaslError of whichever side is not."""
    response = client.evaluate(b"")
    while True:
        assert response is not None
        outcome = server.evaluate(response.token, now_ms)
        verdict = response.next.evaluate(outcome.token or b"")
        if isinstance(outcome, Success):
            assert verdict is None
            return outcome
        response, server = verdict, outcome.next


def challenge(server: SaslServer, token: bytes, now_ms: int = NOW_MS) -> Challenge:
    outcome = server.evaluate(token, now_ms)
    assert isinstance(outcome, Challenge)
    return outcome
