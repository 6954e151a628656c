"""Brokers with delegation tokens, Moldau's or Apache Kafka's, and connections that log in to them.

Whoever comes by PLAINTEXT is a super user. Users with passwords, and tokens, come by SASL_PLAINTEXT.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import moldau
from moldau.security.sasl.client_credentials import client_credentials
from moldau.security.sasl.client_login import Asking, Authenticated, begin_login
from tests.apache_kafka import ApacheKafka
from tests.differential.peer import Peer
from tests.node.securing.secured import plain_users

SECRET = "a secret of brokers"
BROKER = "broker"
PASSWORDS = {name: f"{name}-{secrets.token_hex(8)}" for name in ("alice", "bob", "carol", "dave", "erin", BROKER)}
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:ANONYMOUS;User:{BROKER}",
    "sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM)),
    **{f"listener.name.sasl_plaintext.{each.lower()}.sasl.jaas.config": f"{SCRAM_MODULE} required;" for each in SCRAM},
}
# Apache Kafka forwards what is asked of its controller, which takes nothing about tokens from a plain listener.
CONTROLLER = {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": (
        f'{PLAIN_MODULE} required username="{BROKER}" password="{PASSWORDS[BROKER]}" '
        f'user_{BROKER}="{PASSWORDS[BROKER]}";'
    ),
}


class Addresses(NamedTuple):
    plain: str
    secured: str


@contextmanager
def running_with_tokens(
    kind: str, properties: Mapping[str, str] | None = None, *, is_enabled: bool = True
) -> Iterator[Addresses]:
    secret = {"delegation.token.secret.key": SECRET} if is_enabled else {}
    wanted = {**PROPERTIES, **secret, **(properties or {})}
    if kind == "apache":
        with ApacheKafka(properties={**CONTROLLER, **wanted}, passwords=PASSWORDS) as apache:
            yield Addresses(apache.bootstrap, apache.secured_bootstrap)
        return
    listeners = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
    users = {"listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_users(PASSWORDS)}
    with moldau.run(overrides={"listeners": listeners, **users, **wanted}) as broker:
        yield Addresses(str(broker.addresses["PLAINTEXT"]), str(broker.addresses["SASL_PLAINTEXT"]))


def connected(bootstrap: str) -> Peer:
    host, _, port = bootstrap.rpartition(":")
    return Peer((host, int(port)))


def logged_in(bootstrap: str, user: str) -> Peer:
    peer = connected(bootstrap)
    log_in(peer, "PLAIN", user, PASSWORDS[user])
    return peer


def log_in(peer: Peer, mechanism: str, user: str, password: str, *, is_by_token: bool = False) -> Authenticated:
    """LoginFailed if the broker says no."""
    credentials = client_credentials(mechanism, user=user, password=password, is_by_token=is_by_token)
    asking: Asking | Authenticated = begin_login(credentials, client_id="tokens")
    while isinstance(asking, Asking):
        peer.send(asking.frame)
        answer = peer.receive()
        assert isinstance(answer, bytes), answer
        asking = asking.answered(memoryview(answer))
    return asking


def hmac_of(token_id: str, secret: str = SECRET) -> bytes:
    return hmac.digest(secret.encode(), token_id.encode(), "sha512")


def password_of(token_id: str) -> str:
    return base64.b64encode(hmac_of(token_id)).decode()
