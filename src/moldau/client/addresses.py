"""Where brokers are, as `bootstrap.servers` says it."""

from __future__ import annotations

DEFAULT_PORT = 9092


def addresses_of(servers: str) -> list[tuple[str, int]]:
    """`bootstrap.servers` as librdkafka reads it: the port may be missing, a protocol may stand before. ValueError."""
    return [_address(server) for server in filter(None, (each.strip() for each in servers.split(",")))]


def _address(server: str) -> tuple[str, int]:
    address = server.rpartition("://")[2]
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, str(DEFAULT_PORT)
    if not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError(f"{server!r} has no port number; expected HOST:PORT")
    return host.strip("[]"), int(port)
