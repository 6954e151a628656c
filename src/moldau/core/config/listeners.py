"""Where the broker listens and what it tells clients, under Kafka's rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from moldau.core.config.definitions import ConfigError
from moldau.core.host_names import HOST_NAME_EXPECTED, is_host_name

PLAINTEXT = "PLAINTEXT"
PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_LISTENER = re.compile(
    r"(?P<name>[^:/]+)://(?:\[(?P<ipv6>[0-9a-zA-Z:%._-]*)\]|(?P<host>[^\[\]:/]*)):(?P<port>-?[0-9]+)\Z"
)
_ALL_INTERFACES = ("0.0.0.0", "::", "0:0:0:0:0:0:0:0")


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """An empty host means every interface when listening, and the machine's own name when advertised."""

    name: str
    host: str
    port: int
    security: str = PLAINTEXT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_protocol_map(text: str) -> dict[str, str]:
    protocols: dict[str, str] = {}
    for entry in filter(None, (each.strip() for each in text.split(","))):
        name, colon, protocol = entry.rpartition(":")
        if not colon or protocol.upper() not in PROTOCOLS:
            raise ConfigError("listener.security.protocol.map", text, f"each entry is NAME:{'|'.join(PROTOCOLS)}")
        protocols[name.upper()] = protocol.upper()
    return protocols


def parse_listeners(key: str, entries: Iterable[str], protocols: Mapping[str, str]) -> tuple[ListenerConfig, ...]:
    """Typed listeners of a comma-separated list, in its order; ConfigError says which entry is wrong."""
    listeners = tuple(_parse_listener(key, entry, protocols) for entry in entries)
    if not listeners:
        raise ConfigError(key, "", "at least one listener, as in PLAINTEXT://localhost:9092")
    text = ",".join(map(str, listeners))
    if len({each.name for each in listeners}) != len(listeners):
        raise ConfigError(key, text, "each listener must have a different name")
    fixed = [(each.host, each.port) for each in listeners if each.port != 0]
    if key == "listeners" and len({port for _, port in fixed}) != len(fixed) and not _different_hosts(fixed):
        raise ConfigError(key, text, "each listener must have a different port")
    return listeners


def _different_hosts(addresses: list[tuple[str, int]]) -> bool:
    """The same port twice is fine when an IPv4 and an IPv6 address share it, and only then."""
    by_port: dict[int, list[str]] = {}
    for host, port in addresses:
        by_port.setdefault(port, []).append(host)
    shared = [hosts for hosts in by_port.values() if len(hosts) > 1]
    return all(len(hosts) == 2 and (":" in hosts[0]) != (":" in hosts[1]) for hosts in shared)


def _parse_listener(key: str, entry: str, protocols: Mapping[str, str]) -> ListenerConfig:
    match = _LISTENER.match(entry.strip())
    if match is None:
        raise ConfigError(key, entry, "NAME://host:port, as in PLAINTEXT://localhost:9092")
    name, port = match["name"].upper(), int(match["port"])
    if not 0 <= port <= 65535:
        raise ConfigError(key, entry, "a port between 0 and 65535, where 0 picks a free one")
    if name not in protocols:
        raise ConfigError(key, entry, f"a name that listener.security.protocol.map knows: {', '.join(protocols)}")
    host = match["host"] if match["ipv6"] is None else match["ipv6"]
    if not is_host_name(host):
        raise ConfigError(key, entry, HOST_NAME_EXPECTED)
    return ListenerConfig(name, host, port, protocols[name])


def check_advertised(advertised: Iterable[ListenerConfig], listeners: Iterable[ListenerConfig]) -> None:
    names = [each.name for each in listeners]
    for each in advertised:
        if each.host in _ALL_INTERFACES:
            allowed = "an address that clients can reach; 0.0.0.0 means every interface and leads nowhere"
            raise ConfigError("advertised.listeners", each, allowed)
        if each.name not in names:
            raise ConfigError("advertised.listeners", each, f"a name that listeners has too: {', '.join(names)}")


def complete(
    advertised: Iterable[ListenerConfig], bound_ports: Mapping[str, int], hostname: str
) -> tuple[ListenerConfig, ...]:
    """What clients are told once the sockets are bound: a missing host and a port of 0 are filled in."""
    return tuple(
        replace(each, host=each.host or hostname, port=each.port or bound_ports[each.name]) for each in advertised
    )


def parse_connections_per_ip(text: str) -> dict[str, int]:
    """max.connections.per.ip.overrides: how many connections each of these hosts may hold."""
    counts: dict[str, int] = {}
    for entry in filter(None, (each.strip() for each in text.split(","))):
        host, colon, count = entry.rpartition(":")
        if not colon or not host.strip() or not count.strip().isdecimal():
            allowed = "pairs of host:count, comma-separated, as in 127.0.0.1:100,batch.example.org:20"
            raise ConfigError("max.connections.per.ip.overrides", text, allowed)
        counts[host.strip().removeprefix("[").removesuffix("]")] = int(count)
    return counts
