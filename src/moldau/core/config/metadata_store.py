"""Where the brokers of many machines keep the cluster's metadata; if no service is named, it is beside the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from moldau.core.config.definitions import ConfigConflict, ConfigDef, ConfigValue
from moldau.core.config.keys.metadata_store import METADATA_STORE_KEYS

if TYPE_CHECKING:
    from moldau.core.config.broker import BrokerConfig

METADATA_STORE_CONFIGS: Mapping[str, ConfigDef] = MappingProxyType({each.name: each for each in METADATA_STORE_KEYS})


_ZOOKEEPER_TLS = (
    "zookeeper.ssl.client.enable",
    "zookeeper.ssl.keystore.location",
    "zookeeper.ssl.keystore.password",
    "zookeeper.ssl.keystore.type",
    "zookeeper.ssl.truststore.location",
    "zookeeper.ssl.truststore.password",
    "zookeeper.ssl.truststore.type",
    "zookeeper.ssl.enabled.protocols",
    "zookeeper.ssl.cipher.suites",
    "zookeeper.ssl.endpoint.identification.algorithm",
)
_ETCD_TLS = (
    "etcd.ssl.client.enable",
    "etcd.ssl.keystore.location",
    "etcd.ssl.keystore.password",
    "etcd.ssl.keystore.type",
    "etcd.ssl.truststore.location",
    "etcd.ssl.truststore.password",
    "etcd.ssl.truststore.type",
    "etcd.ssl.enabled.protocols",
    "etcd.ssl.cipher.suites",
    "etcd.ssl.endpoint.identification.algorithm",
)
_TRUSTED = ("zookeeper.sasl.jaas.config", "zookeeper.ssl.keystore.location")


@dataclass(frozen=True, slots=True)
class MetadataService:
    kind: Literal["ZooKeeper", "etcd"]
    connect: str
    session_timeout_ms: int
    connection_timeout_ms: int
    security: Mapping[str, ConfigValue] = field(default_factory=dict, repr=False)
    """By the names of keys, without the service's own: what protects connections and nodes."""

    @property
    def key(self) -> str:
        return f"{self.kind.lower()}.connect"

    def __str__(self) -> str:
        return f"{self.kind} at {self.connect}"


def metadata_service(config: BrokerConfig) -> MetadataService | None:
    """None for the brokers of one machine, which share a file."""
    zookeeper, etcd = config.optional_text("zookeeper.connect"), config.optional_text("etcd.connect")
    if zookeeper and etcd:
        message = "Only one of zookeeper.connect and etcd.connect should be set: the metadata is in one place."
        raise ConfigConflict("etcd.connect", etcd, message)
    if zookeeper:
        session_ms = config.int("zookeeper.session.timeout.ms")
        is_set = config.value("zookeeper.connection.timeout.ms") is not None
        connection_ms = config.int("zookeeper.connection.timeout.ms") if is_set else session_ms
        return MetadataService("ZooKeeper", zookeeper, session_ms, connection_ms, _zookeeper_security(config))
    if etcd:
        session_ms = config.int("broker.session.timeout.ms")
        connection_ms = config.int("initial.broker.registration.timeout.ms")
        return MetadataService("etcd", etcd, session_ms, connection_ms, _tls(config, _ETCD_TLS))
    return None


def _zookeeper_security(config: BrokerConfig) -> Mapping[str, ConfigValue]:
    found = _tls(config, _ZOOKEEPER_TLS)
    if config.flag("zookeeper.set.acl") and not any(config.value(key) for key in _TRUSTED):
        message = (
            "zookeeper.set.acl is true, and ZooKeeper would not know who this broker is: set "
            "zookeeper.sasl.jaas.config, or zookeeper.ssl.client.enable and zookeeper.ssl.keystore.location"
        )
        raise ConfigConflict("zookeeper.set.acl", True, message)
    return {
        **found,
        "sasl.jaas.config": config.value("zookeeper.sasl.jaas.config"),
        "set.acl": config.flag("zookeeper.set.acl"),
    }


def _tls(config: BrokerConfig, keys: tuple[str, ...]) -> Mapping[str, ConfigValue]:
    found = {key.partition(".")[2]: config.value(key) for key in keys}
    if not found["ssl.client.enable"]:
        for key in keys:
            if key.endswith(".location") and config.value(key) is not None:
                # It was written to protect the connection, which would be plain.
                message = f"{key} is set, and {keys[0]} is not true; set that, or remove {key}"
                raise ConfigConflict(key, config.value(key), message)
    return found


def session_timeout_ms(config: BrokerConfig) -> int:
    """After which a broker that is not heard of is taken for gone, wherever the metadata is."""
    service = config.metadata_service
    return config.int("broker.session.timeout.ms") if service is None else service.session_timeout_ms
