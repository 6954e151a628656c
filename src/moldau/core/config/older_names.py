"""Names of keys that older files have: those that still count, and those for which there is another one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from moldau.core.config.broker import BROKER_CONFIGS
from moldau.core.config.topic import TOPIC_CONFIGS

# Keys that Kafka had, with what they became; `translate` says how.
HONOURED: Mapping[str, str] = MappingProxyType(
    {
        "host.name": "listeners",
        "port": "listeners",
        "advertised.host.name": "advertised.listeners",
        "advertised.port": "advertised.listeners",
        "log.message.timestamp.difference.max.ms": "log.message.timestamp.before.max.ms",
        "delegation.token.master.key": "delegation.token.secret.key",
    }
)

_FORMER = {
    "auto.create.topic.enable": "auto.create.topics.enable",
    "auto.create.topics": "auto.create.topics.enable",
    "brokerid": "broker.id",
    "delete.topics.enable": "delete.topic.enable",
    "hostname": "listeners",
    "listener": "listeners",
    "advertised.listener": "advertised.listeners",
    "log.cleaner.enabled": "log.cleaner.enable",
    "log.cleanup.interval.mins": "log.retention.check.interval.ms",
    "log.default.flush.interval.ms": "log.flush.interval.ms",
    "log.default.flush.scheduler.interval.ms": "log.flush.scheduler.interval.ms",
    "log.directories": "log.dirs",
    "log.file.size": "log.segment.bytes",
    "log.flush.interval": "log.flush.interval.messages",
    "log.retention.size": "log.retention.bytes",
    "max.message.size": "message.max.bytes",
    "max.socket.request.bytes": "socket.request.max.bytes",
    "message.timestamp.difference.max.ms": "log.message.timestamp.before.max.ms",
    "num.partition": "num.partitions",
    "socket.receive.buffer": "socket.receive.buffer.bytes",
    "socket.send.buffer": "socket.send.buffer.bytes",
}


def _topic_names() -> dict[str, str]:
    """retention.ms is a topic's key, log.segment.ms nobody's: the broker's are log.retention.ms and log.roll.ms."""
    meant = {}
    for definition in TOPIC_CONFIGS.values():
        for name in (definition.name, f"log.{definition.name}"):
            if definition.synonyms and name not in BROKER_CONFIGS:
                meant[name] = definition.synonyms[0].name
    return meant


# Names that no broker key has (any more): a start with one of them is refused with the name to use.
RENAMED: Mapping[str, str] = MappingProxyType({**_topic_names(), **_FORMER})

_DEFAULT_PORT = 9092


def translate(values: Mapping[str, str], *, is_set: Mapping[str, object], default_host: str) -> dict[str, str]:
    """What the older names among these values stand for; keys that `is_set` has win over them, as in Kafka."""
    meant: dict[str, str] = {}
    if not values.keys().isdisjoint(("host.name", "port")) and "listeners" not in is_set:
        meant["listeners"] = _plaintext(values.get("host.name", default_host), values.get("port"))
    if (
        not values.keys().isdisjoint(("advertised.host.name", "advertised.port"))
        and "advertised.listeners" not in is_set
    ):
        host = values.get("advertised.host.name", values.get("host.name", default_host))
        meant["advertised.listeners"] = _plaintext(host, values.get("advertised.port", values.get("port")))
    difference = values.get("log.message.timestamp.difference.max.ms")
    if difference is not None:
        names = ("log.message.timestamp.before.max.ms", "log.message.timestamp.after.max.ms")
        meant.update({name: difference for name in names if name not in is_set})
    secret = values.get("delegation.token.master.key")
    if secret is not None and "delegation.token.secret.key" not in is_set:
        meant["delegation.token.secret.key"] = secret
    return meant


def _plaintext(host: str, port: str | None) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"PLAINTEXT://{shown}:{_DEFAULT_PORT if port is None else port}"
