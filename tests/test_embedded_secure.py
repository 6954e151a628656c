"""`moldau.run(secure=True)`: TLS, a login and an authorizer for a test, and the settings of its clients."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

import moldau

WAIT_S_MAX = 30.0


def test_clients_of_each_kind_get_in_with_the_settings_that_it_gives(
    moldau_secure_broker: moldau.EmbeddedBroker, moldau_topic: str
) -> None:
    broker = moldau_secure_broker
    assert list(broker.addresses) == ["SASL_SSL"]
    broker.create_topic(moldau_topic)
    assert moldau_topic in AdminClient(broker.clients.confluent).list_topics(timeout=WAIT_S_MAX).topics
    assert moldau_topic in kafka_python_topics(broker.clients.python)
    assert moldau_topic in asyncio.run(aiokafka_topics(broker.clients.python))
    assert broker.clients.java["sasl.jaas.config"].endswith(";")


def kafka_python_topics(settings: dict[str, Any]) -> list[str]:
    kafka = pytest.importorskip("kafka")
    consumer = kafka.KafkaConsumer(**settings)
    try:
        return list(consumer.topics())
    finally:
        consumer.close()


async def aiokafka_topics(settings: dict[str, Any]) -> list[str]:
    aiokafka = pytest.importorskip("aiokafka")
    async with aiokafka.AIOKafkaConsumer(**settings) as consumer:
        return list(await consumer.topics())


def test_a_user_may_do_nothing_until_somebody_allows_it(
    moldau_secure_broker: moldau.EmbeddedBroker, moldau_topic: str
) -> None:
    moldau_secure_broker.create_topic(moldau_topic)
    alice = moldau_secure_broker.add_user("alice", "her secret")
    assert moldau_topic not in AdminClient(alice.confluent).list_topics(timeout=WAIT_S_MAX).topics
    failures: list[KafkaError | None] = []
    producer = Producer(alice.confluent)
    producer.produce(moldau_topic, b"x", on_delivery=lambda error, _: failures.append(error))
    producer.flush(WAIT_S_MAX)
    assert [each.code() for each in failures if each] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    wrong = alice.of_user("alice", "a guess").confluent | {"log_level": 0, "error_cb": lambda _: None}
    with pytest.raises(KafkaException):
        AdminClient(wrong).list_topics(timeout=1)


def test_three_brokers(tmp_path: Path) -> None:
    with moldau.run(brokers=3, secure=True, data_dir=tmp_path / "data") as cluster:
        cluster.create_topic("orders", replication_factor=3)
        producer = Producer({**cluster.clients.confluent, "acks": "all"})
        producer.produce("orders", b"hello")
        assert producer.flush(WAIT_S_MAX) == 0
        assert cluster.seen("orders").in_sync[0] == {0, 1, 2}


def test_no_secret_is_shown(moldau_secure_broker: moldau.EmbeddedBroker) -> None:
    password = moldau_secure_broker.clients.confluent["sasl.password"]
    for shown in (repr(moldau_secure_broker), repr(moldau_secure_broker.clients), moldau_secure_broker.output()):
        assert password not in shown


def test_an_open_brokers_settings_are_its_address(moldau_broker: moldau.EmbeddedBroker) -> None:
    address = moldau_broker.bootstrap_servers
    assert moldau_broker.clients.confluent == {"bootstrap.servers": address}
    assert moldau_broker.clients.python == {"bootstrap_servers": address}
    with pytest.raises(ValueError, match="secure=True"):
        moldau_broker.add_user("alice", "her secret")
