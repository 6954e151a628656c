"""Channels to secured listeners of Apache Kafka, which is how it is known that another broker understands them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from moldau.embedded.process import Address
from moldau.replication.channel import AuthenticationFailed, BrokerChannel
from moldau.replication.channel_security import ChannelSecurity
from moldau.security.sasl.client_login import ClientCredentials
from moldau.security.tls.contexts import client_tls
from moldau.wire.messages import ApiVersionsRequest, MetadataRequest
from tests import apache_kafka
from tests.apache_kafka import ApacheKafka, free_ports
from tests.coordinator.loops import on_a_brokers_loop
from tests.security.sasl.test_client_login import credentials
from tests.security.tls.world import World

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not apache_kafka.available(), reason="needs Java and Apache Kafka"),
]

API_VERSIONS, METADATA = 3, 12
TIMEOUT_MS = 30_000
SESSION_MS = 3_000
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class Secured:
    """An Apache Kafka with a listener for each protocol."""

    def __init__(self, world: World, directory: Path) -> None:
        plain, tls, sasl, controller = free_ports(4)
        self.ports = {"SSL": tls, "SASL_SSL": sasl}
        store, trust = directory / "server.pem", directory / "authority.pem"
        store.write_bytes(world.server.key_pem() + world.server.certificate_pem())
        trust.write_bytes(world.authority.certificate_pem())
        module = "org.apache.kafka.common.security"
        listeners = f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{tls},SASL_SSL://127.0.0.1:{sasl}"
        prefix = "listener.name.sasl_ssl"
        self.kafka = ApacheKafka(
            directory=directory / "kafka",
            properties={
                "controller.quorum.voters": f"1@127.0.0.1:{controller}",
                "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
                "advertised.listeners": listeners,
                "listener.security.protocol.map": (
                    "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL"
                ),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(store),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(trust),
                "listener.name.ssl.ssl.client.auth": "required",
                "sasl.enabled.mechanisms": ",".join(MECHANISMS),
                "connections.max.reauth.ms": str(SESSION_MS),
                f"{prefix}.plain.sasl.jaas.config": (
                    f'{module}.plain.PlainLoginModule required user_alice="alice-secret";'
                ),
                f"{prefix}.scram-sha-256.sasl.jaas.config": f"{module}.scram.ScramLoginModule required;",
                f"{prefix}.scram-sha-512.sasl.jaas.config": f"{module}.scram.ScramLoginModule required;",
            },
        )
        self.kafka.port = plain

    def add_alice(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            wanted = UserScramCredentialUpsertion("alice", ScramCredentialInfo(mechanism, 4_096), b"alice-secret")
            for future in admin.alter_user_scram_credentials([wanted]).values():
                future.result(30)


@pytest.fixture(scope="module")
def secured(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    running = Secured(world, tmp_path_factory.mktemp("secured"))
    with running.kafka:
        running.add_alice()
        yield running


def channel_to(secured: Secured, world: World, protocol: str, who: ClientCredentials | None) -> BrokerChannel:
    tls = client_tls(world.settings(world.client), now_s=world.now_s)
    security = ChannelSecurity(
        tls=lambda: tls, credentials=None if who is None else lambda: who, client_id="broker-2", chance=lambda: 0.0
    )
    address = Address("localhost", secured.ports[protocol])
    return BrokerChannel(1, lambda _: address, client_id="broker-2", on_unreachable=print, security=security)


async def ask(channel: BrokerChannel) -> str:
    versions = ApiVersionsRequest(client_software_name="moldau", client_software_version="1")
    answer = await channel.ask(versions, API_VERSIONS, timeout_ms=TIMEOUT_MS)
    assert len(answer.api_keys) > 50
    found = await channel.ask(MetadataRequest(topics=[]), METADATA, timeout_ms=TIMEOUT_MS)
    cluster_id: str = found.cluster_id
    return cluster_id


def test_a_broker_with_a_certificate_is_known_by_it(secured: Secured, world: World) -> None:
    @on_a_brokers_loop
    async def scenario() -> None:
        channel = channel_to(secured, world, "SSL", None)
        assert await ask(channel) == "bW9sZGF1LW9yYWNsZS0wMQ"
        await channel.close()

    scenario()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_broker_logs_in_and_renews_its_session(secured: Secured, world: World, mechanism: str) -> None:
    @on_a_brokers_loop
    async def scenario() -> None:
        channel = channel_to(secured, world, "SASL_SSL", credentials(mechanism))
        await ask(channel)
        first = channel._connection
        end_s = asyncio.get_running_loop().time() + 2 * SESSION_MS / 1_000
        while asyncio.get_running_loop().time() < end_s:
            await ask(channel)
            await asyncio.sleep(0.05)
        assert channel._connection is first, "Apache Kafka closes a connection whose session has ended"
        await channel.close()

    scenario()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_told_in_its_words(secured: Secured, world: World, mechanism: str) -> None:
    @on_a_brokers_loop
    async def scenario() -> None:
        channel = channel_to(secured, world, "SASL_SSL", credentials(mechanism, password="other"))
        with pytest.raises(AuthenticationFailed, match=f"SASL {mechanism}: Authentication failed"):
            await ask(channel)
        await channel.close()

    scenario()
