"""What one client may cost a server, each limit with its reason. A server may have others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


def never(_path: str) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    connections: int = (
        1_000  # each costs some KB; the one that has been a stranger the longest makes room for a new one
    )
    header_bytes: int = 32 * KIB  # request line and headers; tokens and long subjects are some KB
    pipelined: int = 64  # requests that wait for their turn on one connection: parsed, each is some KB
    body_bytes: int = 16 * MIB  # a request is read whole, and once parsed it costs several times as much
    bodies_bytes: int = 256 * MIB  # of all requests that are under way: each alone may be within the limit of one
    small_body_bytes: int = 64 * KIB  # is taken however much the others have sent
    head_s: float = 10.0  # for request line and headers, which clients send at once
    body_s: float = 30.0  # for a body, and then a second more for each `body_bytes_per_s`; for silence in it, too
    body_bytes_per_s: int = 8 * KIB
    unread_s: float = 30.0  # in which a client has to take something of an answer
    idle_s: float = 75.0  # between two requests on one connection; pools of clients keep theirs for a minute
    handshake_s: float = 10.0  # for TLS
    linger_s: float = 10.0  # for what a client still sends after an answer that ends its connection
    leave_s: float = 5.0  # for requests that are under way when the server ends
    is_stream: Callable[[str], bool] = never
    """Whether requests to this path have bodies without an end: they may be silent, and no size is too large."""
