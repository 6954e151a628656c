"""A secured broker of either kind, with the same listeners, certificates and users."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from confluent_kafka.admin import AdminClient, NewTopic

from tests.apache_kafka import ApacheKafka, free_ports
from tests.node.securing import secured
from tests.node.securing.secured import PASSWORD_MECHANISMS, PASSWORDS, PROTOCOLS, Keys, make_keys, set_password

LISTENERS = ("PLAINTEXT", "SSL", *PROTOCOLS)
_SECURITY = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True)
class Listeners:
    addresses: Mapping[str, str]
    keys: Keys

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.addresses["PLAINTEXT"]})

    def create_topic(self, name: str) -> None:
        admin = self.admin()  # kept, for what it promises ends with it
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(20)


@contextmanager
def running_listeners(kind: str, folder: Path, **more: str) -> Iterator[Listeners]:
    """Keys of `more` have underscores for dots."""
    if kind == "moldau":
        with secured.running_secured(folder, **more) as running:
            yield Listeners({name: running.address(name) for name in LISTENERS}, running.keys)
        return
    keys = make_keys(folder)
    ports = dict(zip((*LISTENERS, "CONTROLLER"), free_ports(len(LISTENERS) + 1), strict=True))
    changed = {key.replace("_", "."): value for key, value in more.items()}
    kafka = ApacheKafka(properties={**secured.overrides(keys), **_of_apache(ports), **changed})
    kafka.port = ports["PLAINTEXT"]
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={(keys.folder / 'jwks.json').as_uri()}"
    with patch.dict(os.environ, JAVA_TOOL_OPTIONS=allowed), kafka:
        listeners = Listeners({name: f"127.0.0.1:{ports[name]}" for name in LISTENERS}, keys)
        for user, password in PASSWORDS.items():
            set_password(listeners.admin(), user, password)
        yield listeners


def _of_apache(ports: Mapping[str, int]) -> dict[str, str]:
    """What Apache Kafka wants to be told besides: where to listen, and a JAAS configuration for every mechanism."""
    by_name = {name: f"{name}://127.0.0.1:{port}" for name, port in ports.items()}
    jaas = {
        f"listener.name.{name.lower()}.{mechanism.lower()}.sasl.jaas.config": (
            f"{_SECURITY}.scram.ScramLoginModule required;"
        )
        for name in PROTOCOLS
        for mechanism in PASSWORD_MECHANISMS[1:]
    }
    tokens = {
        f"listener.name.{name.lower()}.oauthbearer.sasl.{key}": value
        for name in PROTOCOLS
        for key, value in {
            "jaas.config": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required;",
            "server.callback.handler.class": f"{_SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler",
        }.items()
    }
    return {
        "listeners": ",".join(by_name.values()),
        "advertised.listeners": ",".join(by_name[name] for name in LISTENERS),
        "controller.quorum.voters": f"1@127.0.0.1:{ports['CONTROLLER']}",
        "listener.security.protocol.map": ",".join(["CONTROLLER:PLAINTEXT", *(f"{name}:{name}" for name in LISTENERS)]),
        **jaas,
        **tokens,
    }
