"""Who a request is from, and how brokers tell each other: as Apache Kafka's DefaultPrincipalData."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from msgspec import Struct

from moldau.core.errors import ProtocolViolation
from moldau.wire.codec import decode, encode

VERSION_BYTES = 2
VERSION = 0
USER_TYPE = "User"  # of everybody who logs in


class Principal(NamedTuple):
    kind: str
    name: str
    is_by_token: bool = False

    def __str__(self) -> str:
        """As ACLs and super.users name it."""
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal(USER_TYPE, "ANONYMOUS")


def parse_principal(text: str) -> Principal:
    """ValueError, in Kafka's words, if there is no type in front. The name may have colons."""
    kind, colon, name = text.partition(":")
    if not colon:
        raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return Principal(kind, name)


class DefaultPrincipalData(Struct, gc=False):
    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    type: str = ""
    name: str = ""
    token_authenticated: bool = False


def serialized(principal: Principal) -> bytes:
    """With its version in front."""
    data = DefaultPrincipalData(principal.kind, principal.name, principal.is_by_token)
    return VERSION.to_bytes(VERSION_BYTES, "big") + encode(data, VERSION)


def deserialized(data: bytes | memoryview) -> Principal:
    """ProtocolViolation if it is none, or of a later version."""
    version = int.from_bytes(data[:VERSION_BYTES], "big", signed=True)
    if len(data) < VERSION_BYTES or version != VERSION:
        raise ProtocolViolation(f"a principal of version {version}; {VERSION} is supported")
    read, _ = decode(DefaultPrincipalData, VERSION, data, VERSION_BYTES)
    return Principal(read.type, read.name, read.token_authenticated)
