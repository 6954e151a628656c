"""Where a server answers: `http://0.0.0.0:8081,https://[::]:8443`, as Confluent's `listeners`."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SCHEMES = ("http", "https")
BACKLOG = 512
ANY = {"0.0.0.0", "::", ""}


class InvalidListener(ValueError):
    """One line that says what was expected."""


class CannotListen(OSError):
    """One line that says where and why."""


@dataclass(frozen=True, slots=True)
class Listener:
    scheme: str
    host: str
    port: int
    """0 for a free one."""

    @property
    def url(self) -> str:
        return f"{self.scheme}://{bracketed(self.host)}:{self.port}"

    @property
    def is_tls(self) -> bool:
        return self.scheme == "https"


@dataclass(frozen=True, slots=True)
class Bound:
    """A listener with its socket, and the port that it has."""

    listener: Listener
    socket: socket.socket


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def parse_listeners(text: str | Iterable[str]) -> list[Listener]:
    parts = text.split(",") if isinstance(text, str) else text
    found = [_listener(each.strip()) for each in parts if each.strip()]
    if not found:
        raise InvalidListener("no listener; expected http://HOST:PORT or https://HOST:PORT")
    return found


def _listener(text: str) -> Listener:
    scheme, has_scheme, address = text.partition("://")
    host, colon, port = address.rstrip("/").rpartition(":")
    if not has_scheme or scheme.lower() not in SCHEMES or not colon or not port.isdecimal() or int(port) >= 2**16:
        raise InvalidListener(f"{text!r} is no listener; expected http://HOST:PORT or https://HOST:PORT")
    return Listener(scheme.lower(), host.strip("[]") or "0.0.0.0", int(port))


def bind(listeners: Sequence[Listener]) -> list[Bound]:
    """All of them or none. Who asks from here on waits, and is not refused. Raises CannotListen."""
    found: list[Bound] = []
    try:
        found.extend(_bound(each) for each in listeners)
    except BaseException:
        for bound in found:
            bound.socket.close()
        raise
    return found


def _bound(listener: Listener) -> Bound:
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((listener.host, listener.port))
        made.listen(BACKLOG)
        made.setblocking(False)
    except OSError as wrong:
        made.close()
        raise CannotListen(f"cannot listen at {listener.url}: {wrong.strerror or wrong}") from None
    return Bound(Listener(listener.scheme, listener.host, made.getsockname()[1]), made)
