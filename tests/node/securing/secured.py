"""A broker with a listener of each kind, its certificates and its users, and the settings of clients for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

import moldau
from moldau.embedded.broker import EmbeddedBroker
from moldau.security.tls.issuing import Identity, new_authority, new_client, new_server
from tests.security.sasl.tokens import jwk, jwks, token

PASSWORDS = {"alice": "her secret", "bob": "his secret"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PASSWORD_MECHANISMS = MECHANISMS[:3]
PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")
REAUTHENTICATION_MS = 2_500  # of PLAIN by the listener SASL_SSL
ISSUER, AUDIENCE = "https://issuer.example.org", "moldau"


@dataclass(frozen=True, slots=True)
class Keys:
    """Files of an authority, a broker and a client."""

    folder: Path
    authority: Identity

    @property
    def trusted(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def broker(self) -> Path:
        return self.folder / "broker.pem"

    @property
    def client(self) -> Path:
        return self.folder / "client.pem"


def make_keys(folder: Path) -> Keys:
    now = datetime.now(UTC)
    keys = Keys(folder, new_authority(name="Test CA", now=now))
    keys.trusted.write_bytes(keys.authority.certificate_pem())
    write_identity(keys.broker, new_server(keys.authority, hosts=["localhost", "127.0.0.1"], now=now))
    write_identity(keys.client, new_client(keys.authority, name="Carol", now=now))
    (folder / "jwks.json").write_bytes(jwks(jwk(kid="one")))
    return keys


def write_identity(path: Path, identity: Identity) -> None:
    path.write_bytes(identity.key_pem() + identity.certificate_pem())


def plain_users(passwords: dict[str, str]) -> str:
    users = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
    return f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"


def overrides(keys: Keys) -> dict[str, str]:
    listeners = ("PLAINTEXT", "SSL", *PROTOCOLS)
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in listeners),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys.broker),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(keys.trusted),
        "ssl.client.auth": "requested",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]*)$/$1/L,DEFAULT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **{f"listener.name.{name.lower()}.plain.sasl.jaas.config": plain_users(PASSWORDS) for name in PROTOCOLS},
        "listener.name.sasl_ssl.plain.connections.max.reauth.ms": str(REAUTHENTICATION_MS),
        "sasl.oauthbearer.jwks.endpoint.url": (keys.folder / "jwks.json").as_uri(),
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }


@dataclass(frozen=True, slots=True)
class Secured:
    broker: EmbeddedBroker
    keys: Keys

    def address(self, protocol: str) -> str:
        return str(self.broker.addresses[protocol])

    def client(self, protocol: str, **more: Any) -> dict[str, Any]:
        """Of librdkafka."""
        tls = {"ssl.ca.location": str(self.keys.trusted)} if "SSL" in protocol else {}
        address = {"bootstrap.servers": self.address(protocol), "security.protocol": protocol}
        return {**address, **tls, "log_level": 0, **more}

    def logged_in(self, protocol: str, mechanism: str, user: str, password: str | None = None) -> dict[str, Any]:
        if mechanism == "OAUTHBEARER":
            return self.client(protocol, **{"sasl.mechanism": mechanism, "oauth_cb": lambda _: bearer(user)})
        secret = PASSWORDS[user] if password is None else password
        who = {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": secret}
        return self.client(protocol, **who)


def bearer(user: str, **claims: Any) -> tuple[str, float]:
    now_s = int(datetime.now(UTC).timestamp())
    known = {"sub": user, "iss": ISSUER, "aud": AUDIENCE, "iat": now_s, "exp": now_s + 600}
    return token(header={"kid": "one"}, **{**known, **claims}), now_s + 600


def set_password(admin: AdminClient, user: str, password: str) -> None:
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        info = ScramCredentialInfo(mechanism, 4096)
        wanted = UserScramCredentialUpsertion(user, info, password.encode())
        admin.alter_user_scram_credentials([wanted])[user].result(20)


@contextmanager
def running_secured(folder: Path, **more: str) -> Iterator[Secured]:
    keys = make_keys(folder)
    changed = {key.replace("__", "-").replace("_", "."): value for key, value in more.items()}
    with moldau.run(overrides={**overrides(keys), **changed}) as broker:
        secured = Secured(broker, keys)
        admin = AdminClient(secured.client("PLAINTEXT"))
        for user, password in PASSWORDS.items():
            set_password(admin, user, password)
        yield secured
