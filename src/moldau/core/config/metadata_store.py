"""Where the brokers of many machines keep the cluster's metadata; if no service is named, it is beside the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from moldau.core.config.definitions import ConfigConflict, ConfigDef
from moldau.core.config.keys.metadata_store import METADATA_STORE_KEYS

if TYPE_CHECKING:
    from moldau.core.config.broker import BrokerConfig

METADATA_STORE_CONFIGS: Mapping[str, ConfigDef] = MappingProxyType({each.name: each for each in METADATA_STORE_KEYS})


@dataclass(frozen=True, slots=True)
class MetadataService:
    kind: Literal["ZooKeeper", "etcd"]
    connect: str
    session_timeout_ms: int
    connection_timeout_ms: int

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
        return MetadataService("ZooKeeper", zookeeper, session_ms, connection_ms)
    if etcd:
        session_ms = config.int("broker.session.timeout.ms")
        return MetadataService("etcd", etcd, session_ms, config.int("initial.broker.registration.timeout.ms"))
    return None


def session_timeout_ms(config: BrokerConfig) -> int:
    """After which a broker that is not heard of is taken for gone, wherever the metadata is."""
    service = config.metadata_service
    return config.int("broker.session.timeout.ms") if service is None else service.session_timeout_ms
