"""Which listener brokers use among themselves, and what is refused, as Apache Kafka does."""

from __future__ import annotations

import pytest

from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.core.config.inter_broker import inter_broker_listener

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
TWO = {
    "listeners": "CLIENTS://127.0.0.1:9092,INSIDE://127.0.0.1:9093",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,INSIDE:SASL_SSL",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.inside.scram-sha-512.sasl.jaas.config": f'{SCRAM} required username="b" password="p";',
}


def listener(**settings: str) -> str:
    keys = {name.replace("_", "."): value for name, value in settings.items()}
    return str(inter_broker_listener(BrokerConfig.of({**TWO, **keys})))


def refused(settings: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as wrong:
        BrokerConfig.of(settings)
    return str(wrong.value)


def test_the_named_listener_in_any_case() -> None:
    assert listener(inter_broker_listener_name="inside") == "INSIDE://127.0.0.1:9093"
    assert listener(inter_broker_listener_name="CLIENTS") == "CLIENTS://127.0.0.1:9092"


def test_a_protocol_is_the_name_of_its_listener() -> None:
    found = inter_broker_listener(
        BrokerConfig.of(
            {
                "listeners": "PLAINTEXT://127.0.0.1:1,SSL://127.0.0.1:2",
                "security.inter.broker.protocol": "SSL",
            }
        )
    )
    assert (found.name, found.security) == ("SSL", "SSL")


def test_the_first_has_to_do_where_nothing_is_said() -> None:
    assert listener() == "CLIENTS://127.0.0.1:9092"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"inter.broker.listener.name": "OTHER"}, "an advertised listener of this broker: CLIENTS, INSIDE"),
        ({"security.inter.broker.protocol": "SASL_SSL"}, "an advertised listener of this broker: CLIENTS, INSIDE"),
        (
            {"inter.broker.listener.name": "INSIDE", "security.inter.broker.protocol": "SASL_SSL"},
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
        ),
        (
            {"inter.broker.listener.name": "INSIDE", "advertised.listeners": "CLIENTS://127.0.0.1:9092"},
            "an advertised listener of this broker: CLIENTS",
        ),
        (
            {"inter.broker.listener.name": "INSIDE", "sasl.mechanism.inter.broker.protocol": "PLAIN"},
            "must be in sasl.enabled.mechanisms of the listener that brokers use, INSIDE: SCRAM-SHA-256, SCRAM-SHA-512",
        ),
        ({"security.inter.broker.protocol": "TLS"}, "security.inter.broker.protocol"),
    ],
)
def test_what_brokers_could_not_use_is_refused(settings: dict[str, str], why: str) -> None:
    assert why in refused({**TWO, **settings})
