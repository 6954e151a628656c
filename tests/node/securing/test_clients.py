"""What clients hear of users and tokens; tests/clients/test_secured.py has all clients by all mechanisms."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ScramMechanism, UserScramCredentialDeletion

from tests.node.securing.secured import PASSWORD_MECHANISMS, Secured, bearer, set_password

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
