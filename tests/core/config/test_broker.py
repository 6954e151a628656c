from __future__ import annotations

import pytest

from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.core.config.listeners import ListenerConfig

HOUR_MS = 3_600_000


def test_an_empty_configuration_has_kafkas_defaults() -> None:
    config = BrokerConfig()
    assert config.listeners == (ListenerConfig("PLAINTEXT", "", 9092),)
    assert (config.int("num.partitions"), config.flag("auto.create.topics.enable")) == (1, True)
    assert config.topic_defaults.max_message_bytes == 1_048_588


@pytest.mark.parametrize(
    ("values", "retention_ms"),
    [
        ({}, 168 * HOUR_MS),
        ({"log.retention.hours": "2"}, 2 * HOUR_MS),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-2"}, -1),
    ],
)
def test_the_finer_unit_of_retention_wins(values: dict[str, str], retention_ms: int) -> None:
    assert BrokerConfig.of(values).topic_defaults.retention_ms == retention_ms


def test_rolling_by_milliseconds_wins_over_hours() -> None:
    config = BrokerConfig.of({"log.roll.hours": "2", "log.roll.jitter.hours": "1", "log.roll.ms": "5"})
    assert (config.topic_defaults.segment_ms, config.topic_defaults.segment_jitter_ms) == (5, HOUR_MS)


def test_a_dynamic_value_wins_and_its_removal_brings_the_static_one_back() -> None:
    config = BrokerConfig.of({"log.retention.ms": "1"})
    everywhere = config.with_dynamic({"log.retention.ms": "2"}, {})
    here = everywhere.with_dynamic({"log.retention.ms": "2"}, {"log.retention.ms": "3"})
    back = here.with_dynamic({}, {})
    assert [each.topic_defaults.retention_ms for each in (config, everywhere, here, back)] == [1, 2, 3, 1]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num.partitions", "0"),
        ("num.partitions", "many"),
        ("log.retention.ms", "0"),
        ("log.dirs", ""),
        ("listeners", ""),
        ("listeners", "PLAINTEXT://localhost"),
        ("listeners", "PLAINTEXT://localhost:99999"),
        ("listeners", "PLAINTEXT://a..b:9092"),
        ("node.id", "first"),
        ("broker.id", "first"),
        ("listeners", "NOWHERE://localhost:9092"),
        ("listeners", "PLAINTEXT://a:9092,PLAINTEXT://a:9093"),
        ("listener.security.protocol.map", "PLAINTEXT:TLS"),
        ("advertised.listeners", "PLAINTEXT://0.0.0.0:9092"),
        ("advertised.listeners", f"PLAINTEXT://{64 * 'h'}:9092"),
        ("advertised.listeners", "SSL://localhost:9092"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key(key: str, value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.of({key: value})
    assert refused.value.key == key
    assert key in str(refused.value)


def test_two_numbers_for_one_broker_are_refused() -> None:
    assert BrokerConfig.of({"broker.id": "7"}).node_id == 7
    with pytest.raises(ConfigError, match=r"the same as node\.id"):
        BrokerConfig.of({"broker.id": "7", "node.id": "8"})


def test_listeners_on_one_port_need_two_address_families() -> None:
    protocols = {"listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"}
    with pytest.raises(ConfigError, match="different port"):
        BrokerConfig.of({**protocols, "listeners": "A://127.0.0.1:9092,B://127.0.0.2:9092"})
    config = BrokerConfig.of({**protocols, "listeners": "A://127.0.0.1:9092,B://[::1]:9092"})
    assert config.listeners == (ListenerConfig("A", "127.0.0.1", 9092), ListenerConfig("B", "::1", 9092))
    assert str(config.listeners[1]) == "B://[::1]:9092"


def test_clients_are_told_the_bound_port_and_a_host() -> None:
    config = BrokerConfig.of({"listeners": "PLAINTEXT://:0"})
    assert config.advertised({"PLAINTEXT": 4711}, "here") == (ListenerConfig("PLAINTEXT", "here", 4711),)


def test_a_data_folder_counts_once() -> None:
    assert BrokerConfig.of({"log.dirs": "/a,/b,/a", "log.dir": "/c"}).log_dirs == ("/a", "/b")
    assert BrokerConfig.of({"log.dir": "/c"}).log_dirs == ("/c",)
