"""What a broker shows and says to others, from the configuration of the listener that brokers use."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from moldau.broker.peers import Peers
from moldau.controller.image import BrokerImage, ClusterImage, Endpoint
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.core.config.inter_broker import inter_broker_listener
from moldau.core.config.listener_security import ListenerSecurity
from moldau.node.securing.between_brokers import broker_credentials, channel_security
from moldau.security.sasl.client_login import LoginFailed
from tests.node.securing.secured import make_keys
from tests.security.sasl.issuing import CLIENT, SECRET, running_issuer
from tests.security.tls.conftest import world
from tests.security.tls.world import World

__all__ = ["world"]

KAFKA = "org.apache.kafka.common.security"
SCRAM = f'{KAFKA}.scram.ScramLoginModule required username="broker" password="broker-secret";'


def config_of(**settings: str) -> BrokerConfig:
    keys = {name.replace("_", "."): value for name, value in settings.items()}
    return BrokerConfig.of(
        {
            "listeners": "INSIDE://127.0.0.1:9093",
            "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": "file:///keys.json",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "listener.name.inside.scram-sha-512.sasl.jaas.config": SCRAM,
            **keys,
        }
    )


def security_of(config: BrokerConfig) -> ListenerSecurity:
    return ListenerSecurity(config, inter_broker_listener(config))


def refused(config: BrokerConfig) -> str:
    with pytest.raises(ConfigError) as wrong:
        channel_security(lambda: config)
    return str(wrong.value)


def test_a_broker_is_the_user_of_its_listeners_login_module() -> None:
    found = broker_credentials(security_of(config_of()))
    assert found.mechanism == "SCRAM-SHA-512"
    assert "user='broker'" in repr(found.begin("b1"))
    assert "broker-secret" not in repr(found) + repr(found.begin("b1"))


def test_a_mechanism_without_a_user_is_refused() -> None:
    text = {"listener.name.inside.scram-sha-512.sasl.jaas.config": f"{KAFKA}.scram.ScramLoginModule required;"}
    config = BrokerConfig.of({**config_of().layers.static, **text})
    assert "username is not set (brokers log in on listener INSIDE)" in refused(config)


def test_a_missing_login_module_is_refused_by_its_key() -> None:
    static = dict(config_of().layers.static)
    del static["listener.name.inside.scram-sha-512.sasl.jaas.config"]
    told = refused(BrokerConfig.of(static))
    assert told.startswith("listener.name.inside.scram-sha-512.sasl.jaas.config is not set")


def test_kafkas_default_mechanism_is_refused_in_a_cluster() -> None:
    static = dict(config_of().layers.static)
    del static["sasl.mechanism.inter.broker.protocol"]
    assert "sasl.mechanism.inter.broker.protocol is GSSAPI, which must be in" in refused(BrokerConfig.of(static))


def test_a_token_is_read_for_each_login(tmp_path: Path) -> None:
    static = {
        **config_of().layers.static,
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": f"file://{tmp_path}/broker.jwt",
        "listener.name.inside.oauthbearer.sasl.jaas.config": f"{KAFKA}.oauthbearer.OAuthBearerLoginModule required;",
    }
    found = broker_credentials(security_of(BrokerConfig.of(static)))
    with pytest.raises(LoginFailed, match="No such file"):
        found.begin("b1")
    (tmp_path / "broker.jwt").write_text("first\n")
    assert (first := found.begin("b1").evaluate(b"")) is not None
    (tmp_path / "broker.jwt").write_text("second\n")
    assert (second := found.begin("b1").evaluate(b"")) is not None
    assert (b"Bearer first\x01" in first.token, b"Bearer second\x01" in second.token) == (True, True)
    other = {**static, "sasl.oauthbearer.token.endpoint.url": "https://tokens.example/"}
    assert "sasl.oauthbearer.token.endpoint.url: brokers get their token from a file" in refused(BrokerConfig.of(other))


def test_a_token_comes_from_an_issuer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the keys of a broker, or as they were before there were keys."""
    keys, module = make_keys(tmp_path), f"{KAFKA}.oauthbearer.OAuthBearerLoginModule required"
    monkeypatch.setenv("SSL_CERT_FILE", str(keys.trusted))
    with running_issuer(keys.broker, lambda: "token-of-the-broker") as issuer:
        static = {
            **config_of().layers.static,
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": issuer.url,
        }
        login = "listener.name.inside.oauthbearer.sasl.jaas.config"
        by_keys = {
            login: f"{module};",
            "sasl.oauthbearer.client.credentials.client.id": CLIENT,
            "sasl.oauthbearer.client.credentials.client.secret": SECRET,
        }
        for given in (by_keys, {login: f'{module} clientId="{CLIENT}" clientSecret="{SECRET}";'}):
            found = broker_credentials(security_of(BrokerConfig.of({**static, **given})))
            assert found.is_slow
            assert SECRET not in repr(found)
            first = found.begin("b1").evaluate(b"")
            assert first is not None
            assert b"Bearer token-of-the-broker\x01" in first.token
        assert len(issuer.asked) == 1


def test_the_listeners_own_stores_are_those_of_its_channels(world: World) -> None:
    trust = world.folder / "inside.pem"
    trust.write_bytes(world.authority.certificate_pem())
    static = {
        **config_of().layers.static,
        "listener.security.protocol.map": "INSIDE:SASL_SSL",
        "ssl.truststore.location": "/nowhere.pem",
        "listener.name.inside.ssl.truststore.type": "PEM",
        "listener.name.inside.ssl.truststore.location": str(trust),
    }
    channel_security(lambda: BrokerConfig.of(static))
    del static["listener.name.inside.ssl.truststore.location"]
    told = refused(BrokerConfig.of(static))
    assert "ssl.truststore.location: /nowhere.pem: No such file" in told


def test_names_of_hosts_are_looked_at_unless_that_is_turned_off(world: World) -> None:
    static = {**config_of().layers.static, "listener.security.protocol.map": "INSIDE:SASL_SSL"}
    for value, is_checked in (("https", True), ("", False)):
        config = BrokerConfig.of({**static, "ssl.endpoint.identification.algorithm": value})
        tls = channel_security(partial(BrokerConfig.of, config.layers.static))._tls
        assert tls is not None
        assert tls().context.check_hostname is is_checked


@pytest.mark.parametrize(
    ("endpoints", "port"),
    [
        ({"CLIENTS": Endpoint("h", 1), "INSIDE": Endpoint("h", 2, "SASL_SSL")}, 2),
        ({"RENAMED": Endpoint("h", 3, "SASL_SSL")}, 3),
        ({"CLIENTS": Endpoint("h", 1)}, None),
        ({"INSIDE": Endpoint("h", 1, "SASL_PLAINTEXT"), "OTHER": Endpoint("h", 2, "SASL_SSL")}, None),
    ],
)
def test_a_broker_says_its_password_only_where_its_own_protocol_is_spoken(
    endpoints: dict[str, Endpoint], port: int | None
) -> None:
    image = ClusterImage(brokers={2: BrokerImage(2, endpoints)})
    peers = Peers(1, lambda: image, listener_name="INSIDE", protocol="SASL_SSL")
    found = peers.endpoint_of(2)
    assert (None if found is None else found.port) == port
