"""Clients' addresses as ACLs name them, which is how Java prints them: IPv6 with all eight groups."""

from __future__ import annotations

import socket
import struct

_GROUPS = struct.Struct(">8H")
_IPV4_MAPPED = bytes(10) + b"\xff\xff"


def host_address(host: str) -> str:
    """The address of a peer, as a socket gives it, in the words of InetAddress.getHostAddress.

    An IPv4 client of a socket for both families is the IPv4 client that it is on one of its own.
    """
    if ":" not in host:
        return host
    address, percent, scope = host.partition("%")
    packed = socket.inet_pton(socket.AF_INET6, address)
    if packed.startswith(_IPV4_MAPPED):
        return socket.inet_ntop(socket.AF_INET, packed[len(_IPV4_MAPPED) :])
    return ":".join(f"{group:x}" for group in _GROUPS.unpack(packed)) + percent + scope
