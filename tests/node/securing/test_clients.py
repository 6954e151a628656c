"""Real clients over every kind of listener and every mechanism."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
import time
import uuid
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ScramMechanism, UserScramCredentialDeletion

from tests.node.securing.secured import (
    MECHANISMS,
    PASSWORD_MECHANISMS,
    PASSWORDS,
    PROTOCOLS,
    Secured,
    bearer,
    set_password,
)

VALUES = [bytes([number]) * 3_000 for number in range(200)]  # more than a record of TLS, and less than its buffers


def round_trip(client: dict[str, Any]) -> list[bytes | None]:
    topic = uuid.uuid4().hex
    producer = Producer(client)
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(30) == 0
    consumer = Consumer({**client, "group.id": topic, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        return [message.value() for message in consumer.consume(len(VALUES), timeout=30)]
    finally:
        consumer.close()


def test_librdkafka_over_tls(secured: Secured) -> None:
    assert round_trip(secured.client("SSL")) == VALUES


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_librdkafka_logs_in(protocol: str, mechanism: str, secured: Secured) -> None:
    assert round_trip(secured.logged_in(protocol, mechanism, "alice")) == VALUES


@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", "x")])
@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_unknown_users_and_wrong_passwords_hear_the_same(
    mechanism: str, user: str, password: str, secured: Secured
) -> None:
    heard: list[str] = []
    settings = secured.logged_in("SASL_PLAINTEXT", mechanism, user, password)
    client = AdminClient({**settings, "error_cb": lambda error: heard.append(error.str())})
    with pytest.raises(KafkaException):
        client.list_topics(timeout=1.5)
    client.poll(0.1)
    told = (
        "Authentication failed: Invalid username or password"
        if mechanism == "PLAIN"
        else f"due to invalid credentials with SASL mechanism {mechanism}"
    )
    assert any(told in each for each in heard), heard


@pytest.mark.parametrize("claims", [{"aud": "another"}, {"iss": "https://elsewhere"}, {"exp": 1}, {"sub": None}])
def test_a_token_for_somebody_else_is_refused(claims: dict[str, Any], secured: Secured) -> None:
    settings = secured.logged_in("SASL_PLAINTEXT", "OAUTHBEARER", "alice")
    heard: list[str] = []
    later = bearer("alice")[1]
    client = AdminClient(
        {
            **settings,
            "oauth_cb": lambda _: (bearer("alice", **claims)[0], later),
            "error_cb": lambda error: heard.append(error.str()),
        }
    )
    with pytest.raises(KafkaException):
        client.list_topics(timeout=1.5)
    client.poll(0.1)
    assert any("invalid_token" in each for each in heard), heard


class Bearer(AbstractTokenProvider):  # type: ignore[misc]
    async def token(self) -> str:
        return bearer("alice")[0]


async def aiokafka_round_trip(secured: Secured, protocol: str, mechanism: str) -> list[bytes]:
    topic = uuid.uuid4().hex
    context = ssl.create_default_context(cafile=str(secured.keys.trusted)) if "SSL" in protocol else None
    settings: dict[str, Any] = {
        "bootstrap_servers": secured.address(protocol),
        "security_protocol": protocol,
        "ssl_context": context,
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "bob",
        "sasl_plain_password": PASSWORDS["bob"],
    }
    if mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = Bearer()
    async with AIOKafkaProducer(**settings) as producer:
        for value in VALUES[:20]:
            await producer.send(topic, value)
        await producer.flush()
    consumer = AIOKafkaConsumer(topic, auto_offset_reset="earliest", **settings)
    async with consumer:
        return [(await consumer.getone()).value for _ in range(20)]


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [("SSL", "PLAIN"), *((protocol, mechanism) for protocol in PROTOCOLS for mechanism in MECHANISMS)],
)
def test_aiokafka(protocol: str, mechanism: str, secured: Secured) -> None:
    found = asyncio.run(asyncio.wait_for(aiokafka_round_trip(secured, protocol, mechanism), 60))
    assert found == VALUES[:20]


KAFKA_PYTHON = """
import sys
from kafka import KafkaConsumer, KafkaProducer
address, protocol, trusted, password = sys.argv[1:]
for mechanism in sys.stdin.read().split():
    settings = dict(bootstrap_servers=address, security_protocol=protocol, ssl_cafile=trusted, sasl_mechanism=mechanism,
                    sasl_plain_username='bob', sasl_plain_password=password)
    topic = f"kafka-python-{protocol}-{mechanism}"
    producer = KafkaProducer(**settings)
    for number in range(20):
        producer.send(topic, str(number).encode())
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset='earliest', consumer_timeout_ms=30_000, **settings)
    found = [int(next(consumer).value) for _ in range(20)]
    consumer.close()
    assert found == list(range(20)), found
    print(mechanism)
"""


@pytest.mark.parametrize("protocol", ["SSL", *PROTOCOLS])
def test_kafka_python(protocol: str, secured: Secured) -> None:
    """In a process of its own: it is imported with warnings, which are errors here."""
    mechanisms = PASSWORD_MECHANISMS[: 1 if protocol == "SSL" else None]
    words = [secured.address(protocol), protocol, str(secured.keys.trusted), PASSWORDS["bob"]]
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KAFKA_PYTHON, *words],
        input="\n".join(mechanisms),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.stdout.split() == list(mechanisms), finished.stderr


def test_librdkafka_stays_logged_in(secured: Secured) -> None:
    """Its login ends every two and a half seconds, unless it logs in again before."""
    lost: list[str] = []
    settings = secured.logged_in("SASL_SSL", "PLAIN", "alice")
    client = AdminClient({**settings, "error_cb": lambda error: lost.append(error.str())})
    deadline_s = time.monotonic() + 6
    while time.monotonic() < deadline_s:
        client.list_topics(timeout=10)
        client.poll(0.1)
    assert lost == []


def test_credentials_are_described_and_taken_away(secured: Secured) -> None:
    admin = AdminClient(secured.client("PLAINTEXT"))
    set_password(admin, "dora", "soon gone")
    assert round_trip(secured.logged_in("SASL_SSL", "SCRAM-SHA-512", "dora", "soon gone")) == VALUES
    described = admin.describe_user_scram_credentials().result(20)
    assert sorted(described) == ["alice", "bob", "dora"]
    infos = {info.mechanism: info.iterations for info in described["dora"].scram_credential_infos}
    assert infos == {ScramMechanism.SCRAM_SHA_256: 4096, ScramMechanism.SCRAM_SHA_512: 4096}
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        admin.alter_user_scram_credentials([UserScramCredentialDeletion("dora", mechanism)])["dora"].result(20)
    assert sorted(admin.describe_user_scram_credentials().result(20)) == ["alice", "bob"]
    with pytest.raises(KafkaException):
        AdminClient(secured.logged_in("SASL_SSL", "SCRAM-SHA-512", "dora", "soon gone")).list_topics(timeout=1.5)
