"""`zookeeper.connect` and its like: the servers of a service, and the node below which this cluster lives."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from moldau.core.host_names import is_host_name
from moldau.store.store import StoreError

PORT_MAX = 65_535
EXPECTED = "host:port[,host:port...][/chroot]"

_SERVER = re.compile(r"(\[[0-9A-Fa-f:.%\w]+\]|[^\s\[\]:/]+)(?::(\d{1,5}))?")
# A comma in it is that of servers that each have the path behind them: the first would be the only one.
_CHROOT = re.compile(r"(/[^/,;\s\x00-\x1f]+)*/?")


class InvalidConnectString(StoreError):
    """A text that names no servers."""


@dataclass(frozen=True, slots=True)
class ConnectString:
    servers: tuple[str, ...]
    chroot: str = ""

    @classmethod
    def parse(cls, text: str, *, key: str, port: int) -> Self:
        """`host:port` with commas or semicolons between, and one path behind the last: h1:2181,h2:2181/chroot."""
        hosts, slash, path = text.strip().partition("/")
        matches = [_match(server.strip()) for server in re.split("[,;]", hosts)]
        servers = tuple(f"{match[1]}:{match[2] or port}" for match in matches if match)
        ports = [int(match[2] or port) for match in matches if match]
        chroot = slash + path
        if None in matches or not all(0 < each <= PORT_MAX for each in ports) or not _is_path(chroot):
            raise InvalidConnectString(f"Invalid value {text!r} for {key}: expected {EXPECTED}")
        return cls(servers, chroot.rstrip("/"))

    def __str__(self) -> str:
        return ",".join(self.servers) + self.chroot


def _match(server: str) -> re.Match[str] | None:
    match = _SERVER.fullmatch(server)
    return match if match is not None and is_host_name(match[1]) else None


def _is_path(chroot: str) -> bool:
    return _CHROOT.fullmatch(chroot) is not None and not {".", ".."} & set(chroot.split("/"))
