"""Which names of hosts the system can be asked for."""

from __future__ import annotations

import re

HOST_NAME_EXPECTED = "a host whose parts between the dots have 1 to 63 characters"


def is_host_name(host: str) -> bool:
    """False for names such as a..b, on which a socket raises UnicodeError instead of an OSError."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


_PART = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")


def is_certain_name(host: str) -> bool:
    """Whether there can be a host of this name: no port, scheme, blank or comma is in it."""
    try:
        name = host.encode("idna").decode()
    except UnicodeError:
        return False
    return len(name) <= 253 and all(_PART.fullmatch(part) for part in name.removesuffix(".").split("."))
