"""What the keys of TLS and SASL say about a listener: the most particular name wins, and what is missing is told."""

from __future__ import annotations

import re

import pytest

from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.core.config.describe import describe_broker_config
from moldau.core.config.listener_security import (
    LISTENER_SECURITY_KEYS,
    MECHANISM_KEYS,
    TLS_STORE_KEYS,
    ListenerSecurity,
    security_key,
)
from moldau.core.config.support import SECURING

PLAIN_USERS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="hush";'


def security(protocol: str, **more: str) -> ListenerSecurity:
    values = {key.replace("__", "-").replace("_", "."): value for key, value in more.items()}
    protocols = f"INSIDE:{protocol},PLAINTEXT:PLAINTEXT"
    listeners = {"listeners": "INSIDE://:9092,PLAINTEXT://:9093", "listener.security.protocol.map": protocols}
    config = BrokerConfig.of({**listeners, "sasl.enabled.mechanisms": "SCRAM-SHA-256", **values})
    return ListenerSecurity(config, config.listeners[0])


def test_a_mechanism_of_a_listener_wins_over_the_listener_and_that_over_all() -> None:
    found = security(
        "SASL_SSL",
        connections_max_reauth_ms="1",
        listener_name_inside_connections_max_reauth_ms="2",
        listener_name_inside_scram__sha__512_connections_max_reauth_ms="3",
    )
    assert found.int("connections.max.reauth.ms") == 2
    assert found.int("connections.max.reauth.ms", "SCRAM-SHA-512") == 3
    assert found.int("connections.max.reauth.ms", "PLAIN") == 2
    assert security("SSL", connections_max_reauth_ms="1").int("connections.max.reauth.ms", "PLAIN") == 1


def test_whoever_logs_in_needs_a_certificate_only_where_the_listener_says_so() -> None:
    assert security("SSL", ssl_client_auth="required").tls_values()["ssl.client.auth"] == "required"
    assert security("SASL_SSL", ssl_client_auth="required").tls_values()["ssl.client.auth"] == "none"
    own = security("SASL_SSL", listener_name_inside_ssl_client_auth="required")
    assert own.tls_values()["ssl.client.auth"] == "required"


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"sasl_enabled_mechanisms": "GSSAPI"}, r"listener\.name\.inside\.gssapi\.sasl\.jaas\.config is not set"),
        ({"sasl_enabled_mechanisms": "PLAIN,CRAM-MD5"}, "CRAM-MD5 is not supported yet"),
        ({"sasl_enabled_mechanisms": ""}, "needs some of PLAIN"),
        ({"sasl_enabled_mechanisms": "PLAIN"}, r"listener\.name\.inside\.plain\.sasl\.jaas\.config is not set"),
        ({"sasl_enabled_mechanisms": "OAUTHBEARER"}, r"jwks\.endpoint\.url is not set"),
        ({"sasl_server_max_receive_size": "0"}, r"sasl\.server\.max\.receive\.size: Value must be at least 1"),
        ({"connections_max_reauth_ms": "-5"}, r"connections\.max\.reauth\.ms: Value must be at least 0"),
        ({"listener_name_inside_ssl_client_auth": "maybe"}, r"listener\.name\.inside\.ssl\.client\.auth"),
    ],
)
def test_a_listener_that_nobody_could_use_is_refused(values: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        security("SASL_PLAINTEXT", **values)


def test_kafkas_default_mechanism_without_a_key_is_refused_with_the_keys_to_set() -> None:
    told = r"gssapi\.sasl\.jaas\.config is not set.* is Kafka's default; .* set listener\.name\.sasl_ssl\.sasl\.enabled"
    with pytest.raises(ConfigError, match=told):
        BrokerConfig.of({"listeners": "SASL_SSL://:9092"})


def test_a_plain_listener_is_not_asked_for_anything() -> None:
    BrokerConfig.of({"listeners": "PLAINTEXT://:9092", "sasl.enabled.mechanisms": "GSSAPI"})


def test_no_secret_of_a_listener_is_described() -> None:
    name = "listener.name.inside.plain.sasl.jaas.config"
    values = {"listener.name.inside.ssl.keystore.password": "hush", name: PLAIN_USERS}
    stores = {"listener.name.inside.ssl.keystore.location": "/keys/broker.pem"}
    config = BrokerConfig.of({**values, **stores})
    entries = {entry.name: entry for entry in describe_broker_config(config)}
    assert "hush" not in repr(entries)
    assert entries["listener.name.inside.ssl.keystore.location"].value == "/keys/broker.pem"


OF_BROKERS_AS_CLIENTS = {
    "sasl.mechanism.inter.broker.protocol",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.scope",
    "ssl.endpoint.identification.algorithm",
}


def test_one_list_names_the_keys_that_secure_a_listener() -> None:
    assert {*LISTENER_SECURITY_KEYS, *MECHANISM_KEYS} == SECURING - OF_BROKERS_AS_CLIENTS
    assert set(TLS_STORE_KEYS) <= SECURING


def test_a_key_of_a_listener_is_told_from_others() -> None:
    assert security_key("listener.name.a.ssl.keystore.location") == ("A", "ssl.keystore.location")
    assert security_key("listener.name.a.scram-sha-256.sasl.jaas.config") == ("A", "sasl.jaas.config")
    for other in ("ssl.keystore.location", "listener.name.a.sasl.jaas.config", "listener.name.a.max.connections"):
        assert security_key(other) is None
    assert not re.search("hush", str(security_key("listener.name.a.hush")))


@pytest.mark.parametrize("value", ["https", "HTTPS", ""])
def test_names_of_other_brokers_are_checked_or_not(value: str) -> None:
    assert security("SSL", ssl_endpoint_identification_algorithm=value).uses_tls


def test_another_way_to_check_names_is_refused() -> None:
    with pytest.raises(ConfigError, match=re.escape("ssl.endpoint.identification.algorithm")):
        security("SSL", ssl_endpoint_identification_algorithm="ldaps")


def test_whoever_fails_to_log_in_hears_of_it_before_the_connection_is_idle_for_too_long() -> None:
    told = "connection.failed.authentication.delay.ms=500 has to be less than connections.max.idle.ms=500"
    with pytest.raises(ConfigError, match=re.escape(told)):
        security("SSL", connections_max_idle_ms="500", connection_failed_authentication_delay_ms="500")
    assert security("SSL", connections_max_idle_ms="0", connection_failed_authentication_delay_ms="500").uses_tls
