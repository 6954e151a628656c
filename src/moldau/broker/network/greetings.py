"""Clients of another protocol, told by the first bytes that they send: read as a frame's size, those are absurd."""

from __future__ import annotations

from moldau.core.errors import ProtocolViolation

_TLS_HANDSHAKE = b"\x16\x03"
_TLS = "speaks TLS, and this listener is plain: set security.protocol=PLAINTEXT, or use the port of a TLS listener"
_HTTP = "speaks HTTP: this is a Kafka listener, which a Kafka client has to talk to"
_PROXY = "begins with a PROXY protocol header: turn that off at the load balancer, for Kafka has no such header"
_REDIS = "speaks the protocol of Redis: this is a Kafka listener"
_ZOOKEEPER = "sends a command of ZooKeeper: this is a Kafka listener, and there is no ZooKeeper behind it"
_GREETINGS = {
    **dict.fromkeys((b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"TRAC", b"CONN", b"PRI "), _HTTP),
    **dict.fromkeys((b"PROX", b"\r\n\r\n"), _PROXY),
    **dict.fromkeys((b"PING", b"AUTH", b"INFO", b"HELL"), _REDIS),
    **dict.fromkeys((b"ruok", b"stat", b"srvr", b"mntr", b"conf", b"envi", b"isro"), _ZOOKEEPER),
    b"SSH-": "speaks SSH: this is a Kafka listener",
    b"AMQP": "speaks AMQP: this is a Kafka listener",
}


class ForeignProtocol(ProtocolViolation):
    """Not a mistake in a request, but somebody at the wrong door: it is the same every time it comes."""


def foreign_protocol(first: bytes) -> str | None:
    """What a client whose first four bytes are these should hear about; None if it may be one of ours."""
    if first[:2] == _TLS_HANDSHAKE:
        return _TLS
    if first[:1] in (b"*", b"$") and first[1:2].isdigit():
        return _REDIS
    return _GREETINGS.get(first)
