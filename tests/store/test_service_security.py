"""Kafka's keys for TLS, SASL and ACLs in ZooKeeper, and the same of etcd: what they become, and what is refused."""

from __future__ import annotations

import pytest

from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.core.config.metadata_store import MetadataService
from moldau.store.service_security import service_tls, zookeeper_security
from moldau.store.zookeeper.security import User
from tests.security.tls.conftest import world
from tests.security.tls.world import World

__all__ = ["world"]

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
JAAS = f'{MODULE} required username="moldau" password="zk-secret";'


def service(**settings: str) -> MetadataService:
    keys = {name.replace("_", "."): value for name, value in settings.items()}
    found = BrokerConfig.of({"zookeeper.connect": "z:2181", **keys}).metadata_service
    assert found is not None
    return found


def refused(**settings: str) -> str:
    with pytest.raises(ConfigError) as wrong:
        zookeeper_security(service(**settings))
    return str(wrong.value)


def test_nothing_is_protected_where_nothing_is_set() -> None:
    assert zookeeper_security(service()) is None


def test_a_login_and_acls() -> None:
    made = zookeeper_security(service(zookeeper_sasl_jaas_config=JAAS, zookeeper_set_acl="true"))
    assert made is not None
    assert isinstance(made.user, User)
    assert (made.user.name, made.user.password, made.sets_acl, made.tls) == ("moldau", "zk-secret", True, None)
    assert "zk-secret" not in repr(made) + repr(service(zookeeper_sasl_jaas_config=JAAS))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("useTicketCache=true", "a broker needs the key of its principal: set useKeyTab=true"),
        ('useKeyTab=true keyTab="/none"', "GSSAPI needs principal, which is not set"),
        ('useKeyTab=true keyTab="/none" principal="*"', "to log in to others a broker has to be somebody"),
    ],
)
def test_a_login_by_kerberos_needs_a_key(options: str, told: str) -> None:
    key = "zookeeper.sasl.jaas.config"
    words = refused(zookeeper_sasl_jaas_config=f"com.sun.security.auth.module.Krb5LoginModule required {options};")
    assert words.startswith(f"{key}: ")
    assert told in words


def test_the_kind_of_a_store_is_in_its_name(world: World) -> None:
    trust = world.folder / "trust.pem"
    trust.write_bytes(world.authority.certificate_pem())
    made = zookeeper_security(service(zookeeper_ssl_client_enable="true", zookeeper_ssl_truststore_location=str(trust)))
    assert made is not None
    assert made.tls is not None
    assert made.tls().context.check_hostname
    assert "set it to PEM or PKCS12" in refused(
        zookeeper_ssl_client_enable="true", zookeeper_ssl_truststore_location=str(world.folder / "trust")
    )


def test_host_names_are_left_unchecked_if_asked_for(world: World) -> None:
    made = zookeeper_security(
        service(zookeeper_ssl_client_enable="true", zookeeper_ssl_endpoint_identification_algorithm="")
    )
    assert made is not None
    assert made.tls is not None
    assert not made.tls().context.check_hostname


def test_a_java_key_store_is_refused_with_the_command_that_converts_it(world: World) -> None:
    store = world.folder / "store.jks"
    store.write_bytes(bytes.fromhex("feedfeed") + bytes(100))
    told = refused(zookeeper_ssl_client_enable="true", zookeeper_ssl_keystore_location=str(store))
    assert told.startswith(f"zookeeper.ssl.keystore.location: {store} is a JKS store")
    assert "keytool -importkeystore" in told
    assert "zookeeper.ssl.keystore.type=PKCS12" in told


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"zookeeper_set_acl": "true"}, "ZooKeeper would not know who this broker is"),
        ({"zookeeper_ssl_keystore_location": "/k.pem"}, "zookeeper.ssl.client.enable is not true"),
        ({"zookeeper_sasl_jaas_config": f"{MODULE} required;"}, "username and password are needed"),
        ({"zookeeper_sasl_jaas_config": JAAS[:-1]}, "zookeeper.sasl.jaas.config: JAAS config entry not terminated"),
        ({"zookeeper_sasl_jaas_config": "com.example.Module required;"}, "unknown login module"),
    ],
)
def test_what_would_protect_nothing_is_refused(settings: dict[str, str], why: str) -> None:
    told = refused(**settings)
    assert why in told
    assert "zk-secret" not in told


def test_tls_to_etcd_has_the_same_keys(world: World) -> None:
    trust = world.folder / "etcd-trust.pem"
    trust.write_bytes(world.authority.certificate_pem())
    keys = {"etcd.connect": "e:2379", "etcd.ssl.client.enable": "true", "etcd.ssl.truststore.location": str(trust)}
    found = BrokerConfig.of(keys).metadata_service
    assert found is not None
    tls = service_tls(found)
    assert tls is not None
    assert tls.current().has_truststore
