"""The configuration of a broker: Kafka's keys, the layers a value can come from, and typed access to the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from moldau.core.config.alone import check_alone
from moldau.core.config.definitions import ConfigConflict, ConfigDef, ConfigError, ConfigValue
from moldau.core.config.group import check_broker_bounds
from moldau.core.config.keys.groups import GROUPS_KEYS
from moldau.core.config.keys.kraft import KRAFT_KEYS
from moldau.core.config.keys.metrics import METRICS_KEYS
from moldau.core.config.keys.network import NETWORK_KEYS
from moldau.core.config.keys.quorum import QUORUM_KEYS
from moldau.core.config.keys.replication import REPLICATION_KEYS, THROTTLE_KEYS
from moldau.core.config.keys.security import SECURITY_KEYS
from moldau.core.config.keys.server import SERVER_KEYS
from moldau.core.config.keys.share import SHARE_KEYS
from moldau.core.config.keys.share_and_streams import SHARE_AND_STREAMS_KEYS
from moldau.core.config.keys.storage import STORAGE_KEYS
from moldau.core.config.keys.tiered_storage import TIERED_STORAGE_KEYS
from moldau.core.config.keys.transactions import TRANSACTIONS_KEYS
from moldau.core.config.listeners import (
    PLAINTEXT,
    ListenerConfig,
    check_advertised,
    complete,
    parse_connections_per_ip,
    parse_listeners,
    parse_protocol_map,
)
from moldau.core.config.metadata_store import METADATA_STORE_CONFIGS, metadata_service
from moldau.core.config.monitoring import LISTENER, MONITORING_CONFIGS, HttpAddress, parse_http_address
from moldau.core.config.topic import TopicConfig
from moldau.core.limits import MIB

if TYPE_CHECKING:
    from moldau.core.config.access import AccessControl

Integer = int  # BrokerConfig.int hides the builtin inside its class

_ALL_KEYS = chain(
    TIERED_STORAGE_KEYS,
    SERVER_KEYS,
    KRAFT_KEYS,
    NETWORK_KEYS,
    REPLICATION_KEYS,
    GROUPS_KEYS,
    SHARE_AND_STREAMS_KEYS,
    STORAGE_KEYS,
    SHARE_KEYS,
    TRANSACTIONS_KEYS,
    QUORUM_KEYS,
    METRICS_KEYS,
    SECURITY_KEYS,
)

BROKER_CONFIGS: Mapping[str, ConfigDef] = MappingProxyType({each.name: each for each in _ALL_KEYS})
THROTTLES: Mapping[str, ConfigDef] = MappingProxyType({each.name: each for each in THROTTLE_KEYS})

# The keys that a listener can have for itself, as listener.name.<name>.<key>.
LISTENER_KEYS = ("max.connections", "max.connection.creation.rate")
_LISTENER_PREFIX = "listener.name."

# Keys that Kafka's authorizer reads, and its broker has no definition of.
AUTHORIZER_KEYS = ("super.users", "allow.everyone.if.no.acl.found")

_DYNAMIC = """
    background.threads compression.gzip.level compression.lz4.level compression.type compression.zstd.level
    config.providers cordoned.log.dirs follower.fetch.last.tiered.offset.enable
    group.consumer.assignment.interval.ms group.coordinator.cached.buffer.max.bytes
    group.share.assignment.interval.ms group.streams.assignment.interval.ms log.cleaner.backoff.ms
    log.cleaner.dedupe.buffer.size log.cleaner.delete.retention.ms log.cleaner.io.buffer.load.factor
    log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second log.cleaner.max.compaction.lag.ms
    log.cleaner.min.cleanable.ratio log.cleaner.min.compaction.lag.ms log.cleaner.threads log.cleanup.policy
    log.flush.interval.messages log.flush.interval.ms log.index.interval.bytes log.index.size.max.bytes
    log.local.retention.bytes log.local.retention.ms log.message.timestamp.after.max.ms
    log.message.timestamp.before.max.ms log.message.timestamp.type log.preallocate log.retention.bytes
    log.retention.ms log.roll.jitter.ms log.roll.ms log.segment.bytes log.segment.delete.delay.ms
    max.connection.creation.rate max.connections max.connections.per.ip max.connections.per.ip.overrides
    message.max.bytes metric.reporters min.insync.replicas num.io.threads num.network.threads
    num.recovery.threads.per.data.dir num.replica.fetchers principal.builder.class producer.id.expiration.ms
    remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
    remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
    remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
    remote.log.manager.follower.thread.pool.size remote.log.reader.threads sasl.enabled.mechanisms
    sasl.jaas.config sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
    sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.mechanism.inter.broker.protocol share.coordinator.cached.buffer.max.bytes ssl.cipher.suites
    ssl.client.auth ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class
    ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key
    ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider
    ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates
    ssl.truststore.location ssl.truststore.password ssl.truststore.type transaction.partition.verification.enable
    unclean.leader.election.enable
"""

DYNAMIC_BROKER_CONFIGS = frozenset(_DYNAMIC.split())


@dataclass(frozen=True, slots=True, eq=False)
class BrokerLayers:
    """The texts that were set, by where: for this broker, for all brokers, in the file, environment and arguments.

    Compared by identity, so that what is derived from them can be remembered.
    """

    static: Mapping[str, str] = field(default_factory=dict)
    dynamic_default: Mapping[str, str] = field(default_factory=dict)
    dynamic: Mapping[str, str] = field(default_factory=dict)

    def effective(self) -> dict[str, str]:
        return {**self.static, **self.dynamic_default, **self.dynamic}


class BrokerConfig:
    """Typed values of all keys. Immutable: a dynamic change gives a new one."""

    __slots__ = (
        "_listener_values",
        "_values",
        "access_control",
        "advertised_listeners",
        "connections_per_ip_overrides",
        "layers",
        "listeners",
        "metadata_service",
        "topic_defaults",
    )

    def __init__(self, layers: BrokerLayers | None = None) -> None:
        self.layers = layers or BrokerLayers()
        effective = self.layers.effective()
        self._values: dict[str, ConfigValue] = {
            name: definition.parse(effective[name]) if name in effective else definition.default
            for name, definition in chain(
                BROKER_CONFIGS.items(), METADATA_STORE_CONFIGS.items(), MONITORING_CONFIGS.items()
            )
        }
        self._listener_values = _listener_values(effective)
        self._check_node_id(effective)
        _check_retention(self)
        check_broker_bounds(self)
        _check_cleaner_memory(self)
        self.topic_defaults = TopicConfig.from_broker(effective)
        self.listeners, self.advertised_listeners = self._parse_listeners()
        self.connections_per_ip_overrides = parse_connections_per_ip(self.text("max.connections.per.ip.overrides"))
        if self.int("max.connections.per.ip") == 0 and not self.connections_per_ip_overrides:
            raise ConfigError("max.connections.per.ip", 0, "0 only if max.connections.per.ip.overrides is set")
        if any(each.security != PLAINTEXT for each in self.listeners):
            from moldau.core.config.listener_security import check_listener_security

            check_listener_security(self)
        _check_failure_delay(self)
        self.metadata_service = metadata_service(self)
        self.access_control = _access_control(self, effective)
        check_alone(self, is_set=effective.keys())

    @classmethod
    def of(cls, static: Mapping[str, str]) -> Self:
        """node.id and broker.id are two names of one number, so either sets both."""
        both = {}
        for name, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
            if name in static and other not in static:
                BROKER_CONFIGS[name].parse(static[name])  # what is wrong is told of the name that the user wrote
                both = {name: static[name], other: static[name]}
        return cls(BrokerLayers(static=MappingProxyType({**static, **both})))

    def with_dynamic(self, dynamic_default: Mapping[str, str], dynamic: Mapping[str, str]) -> Self:
        return type(self)(replace(self.layers, dynamic_default=dynamic_default, dynamic=dynamic))

    def int(self, name: str) -> Integer:
        value = self._values[name]
        assert isinstance(value, Integer), f"{name} is no whole number, or not set"
        return value

    def listener_int(self, listener: str, name: str) -> Integer:
        """One of `LISTENER_KEYS`: what is set for this listener, else what is set for the broker."""
        return self._listener_values.get((listener.upper(), name), self.int(name))

    def number(self, name: str) -> float:
        value = self._values[name]
        assert isinstance(value, float), f"{name} is no number"
        return value

    def flag(self, name: str) -> bool:
        value = self._values[name]
        assert isinstance(value, bool), f"{name} is neither true nor false"
        return value

    def text(self, name: str) -> str:
        value = self._values[name]
        assert isinstance(value, str), f"{name} is no text, or not set"
        return value

    def optional_text(self, name: str) -> str | None:
        return None if self._values[name] is None else self.text(name)

    def items(self, name: str) -> tuple[str, ...]:
        value = self._values[name]
        assert isinstance(value, tuple), f"{name} is no list, or not set"
        return value

    def value(self, name: str) -> ConfigValue:
        return self._values[name]

    @property
    def node_id(self) -> Integer:
        return self.int("node.id")

    @property
    def metrics_listener(self) -> HttpAddress | None:
        """None where metrics are off."""
        text = self.optional_text("metrics.listener")
        return parse_http_address(LISTENER, text) if text else None

    @property
    def otlp_endpoint(self) -> str | None:
        """Where metrics are sent; None where they are not."""
        return self.optional_text("otel.exporter.otlp.endpoint") or None

    @property
    def has_metrics(self) -> bool:
        """Whether anybody reads them."""
        return self.metrics_listener is not None or self.otlp_endpoint is not None

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """The log directories, each once, in the order given."""
        chosen = "log.dir" if self._values["log.dirs"] is None else "log.dirs"
        log_dirs = tuple(dict.fromkeys(each for each in self.items(chosen) if each))
        if not log_dirs:
            raise ConfigError(chosen, "", "at least one directory")
        return log_dirs

    def advertised(self, bound_ports: Mapping[str, Integer], hostname: str) -> tuple[ListenerConfig, ...]:
        """What clients are told once the sockets are bound."""
        return complete(self.advertised_listeners, bound_ports, hostname)

    def _check_node_id(self, effective: Mapping[str, str]) -> None:
        if "broker.id" not in effective:
            self._values["broker.id"] = self._values["node.id"]
        elif self._values["broker.id"] != self._values["node.id"]:
            raise ConfigError("broker.id", effective["broker.id"], f"the same as node.id, {self.node_id}")

    def _parse_listeners(self) -> tuple[tuple[ListenerConfig, ...], tuple[ListenerConfig, ...]]:
        protocols = parse_protocol_map(self.text("listener.security.protocol.map"))
        # There is no controller quorum to talk to, so the listeners that Kafka would give it are not opened.
        names = self._values["controller.listener.names"]
        quorum = {each.upper() for each in names} if isinstance(names, tuple) else set()
        known = {**dict.fromkeys(quorum, "PLAINTEXT"), **protocols}
        given = parse_listeners("listeners", self.items("listeners"), known)
        listeners = _without(quorum, given)
        if not listeners:
            raise ConfigError("listeners", ",".join(map(str, given)), "at least one that is not the controller's")
        advertised = listeners
        if self._values["advertised.listeners"] is not None:
            entries = self.items("advertised.listeners")
            advertised = _without(quorum, parse_listeners("advertised.listeners", entries, known))
        check_advertised(advertised, listeners)
        return listeners, advertised


def listener_key(name: str) -> tuple[str, str] | None:
    """The listener, and which of `LISTENER_KEYS` is set for it alone; None for any other name of a key."""
    for key in LISTENER_KEYS:
        if name.startswith(_LISTENER_PREFIX) and name.endswith(f".{key}"):
            return name.removeprefix(_LISTENER_PREFIX).removesuffix(f".{key}").upper(), key
    return None


def _listener_values(effective: Mapping[str, str]) -> dict[tuple[str, str], int]:
    values = {}
    for name, text in effective.items():
        found = listener_key(name)
        if found is not None:
            value = replace(BROKER_CONFIGS[found[1]], name=name).parse(text)
            assert isinstance(value, int)
            values[found] = value
    return values


def _without(names: set[str], listeners: tuple[ListenerConfig, ...]) -> tuple[ListenerConfig, ...]:
    return tuple(each for each in listeners if each.name not in names)


def _access_control(config: BrokerConfig, effective: Mapping[str, str]) -> AccessControl | None:
    if "authorizer.class.name" not in effective and effective.keys().isdisjoint(AUTHORIZER_KEYS):
        return None
    from moldau.core.config.access import access_control  # most brokers have none

    return access_control(config)


def _check_failure_delay(config: BrokerConfig) -> None:
    delay, idle = "connection.failed.authentication.delay.ms", "connections.max.idle.ms"
    if 0 < config.int(idle) <= config.int(delay):
        message = (
            f"{delay}={config.int(delay)} has to be less than {idle}={config.int(idle)}, or nobody hears of a failure"
        )
        raise ConfigConflict(delay, config.int(delay), message)


def _check_retention(config: BrokerConfig) -> None:
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        if config.value(name) == 0:
            raise ConfigError(name, 0, "must be unlimited (-1) or, greater than or equal to 1")


def _check_cleaner_memory(config: BrokerConfig) -> None:
    threads, size = config.int("log.cleaner.threads"), config.int("log.cleaner.dedupe.buffer.size")
    if threads == 0:
        raise ConfigError("log.cleaner.threads", threads, "at least 1; log.cleaner.enable=false turns the cleaner off")
    if size // threads <= MIB:
        message = "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."
        raise ConfigConflict("log.cleaner.dedupe.buffer.size", size, message)
