"""Which names of hosts the system can be asked for."""

from __future__ import annotations

HOST_NAME_EXPECTED = "a host whose parts between the dots have 1 to 63 characters"


def is_host_name(host: str) -> bool:
    """False for names such as a..b, on which a socket raises UnicodeError instead of an OSError."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True
