"""Which metrics a client is asked for: all subscriptions that match it, together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from moldau.core.config.client_metrics import (
    ALL_METRICS,
    CLIENT_ID,
    CLIENT_INSTANCE_ID,
    CLIENT_SOFTWARE_NAME,
    CLIENT_SOFTWARE_VERSION,
    CLIENT_SOURCE_ADDRESS,
    CLIENT_SOURCE_PORT,
    INTERVAL_MS_DEFAULT,
    MATCH,
    METRICS,
    client_metrics_interval_ms,
    client_metrics_list,
    parse_selectors,
)
from moldau.core.ids import format_uuid
from moldau.core.patterns import CompiledPattern
from moldau.wire.crc import crc32c

Configs: TypeAlias = Mapping[str, Mapping[str, str]]
"""Of all subscriptions, by name, as they are in the image."""


class Client(NamedTuple):
    """A client instance, as the request that it was first seen by tells of it."""

    instance_id: bytes
    client_id: str
    software_name: str
    software_version: str
    address: str
    port: int
    listener: str
    principal: str

    @property
    def labelled(self) -> tuple[bytes, str, str, str]:
        """What is on each of its series; the rest of it may change while it is the same client."""
        return self[:4]

    def attributes(self) -> dict[str, str]:
        """What selectors look at."""
        return {
            CLIENT_INSTANCE_ID: format_uuid(self.instance_id),
            CLIENT_ID: self.client_id,
            CLIENT_SOFTWARE_NAME: self.software_name,
            CLIENT_SOFTWARE_VERSION: self.software_version,
            CLIENT_SOURCE_ADDRESS: self.address,
            CLIENT_SOURCE_PORT: str(self.port),
        }


class Wanted(NamedTuple):
    """Of one client: prefixes of names, or `*`, and how often they are pushed."""

    metrics: tuple[str, ...]
    interval_ms: int

    def subscription_id(self, instance_id: bytes) -> int:
        """Kafka's, for up to one name: of several, its order is that of Java's hashes, and ours is that of the names.

        Every broker of a cluster gives the same: a client may push to one what another asked it for.
        """
        checksum = crc32c(f"[{', '.join(self.metrics)}]{self.interval_ms}".encode())
        return _as_int32(checksum ^ _java_hash(instance_id))


class Subscription(NamedTuple):
    metrics: frozenset[str]
    interval_ms: int
    selectors: Mapping[str, CompiledPattern]


class Subscriptions:
    """Parsed once for each state of the configurations."""

    def __init__(self) -> None:
        self.configs: Configs | None = None
        self._parsed: list[Subscription] = []

    def follow(self, configs: Configs) -> None:
        if configs is not self.configs:
            self.configs = configs
            self._parsed = [_parsed(each) for each in configs.values()]

    def wanted_of(self, client: Client) -> Wanted:
        attributes = client.attributes()
        interval_ms, metrics = INTERVAL_MS_DEFAULT, set[str]()
        for each in self._parsed:
            if all(pattern.matches(attributes[name]) for name, pattern in each.selectors.items()):
                interval_ms = min(interval_ms, each.interval_ms)
                metrics |= each.metrics
        return Wanted((ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics)), interval_ms)


def _parsed(values: Mapping[str, str]) -> Subscription:
    metrics = frozenset(client_metrics_list(METRICS, values))
    return Subscription(
        metrics, client_metrics_interval_ms(values), parse_selectors(client_metrics_list(MATCH, values))
    )


def _java_hash(uuid: bytes) -> int:
    """Of Kafka's Uuid: both halves of the exclusive or of its halves."""
    both = int.from_bytes(uuid[:8], "big") ^ int.from_bytes(uuid[8:], "big")
    return (both >> 32) ^ (both & 0xFFFF_FFFF)


def _as_int32(value: int) -> int:
    return value - (1 << 32) if value & (1 << 31) else value
