"""What classic consumers say to each other inside JoinGroup and SyncGroup: a subscription, and an assignment.

It is between the clients as long as one of them assigns. Where the broker assigns for them it reads and writes both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, TypeVar

from msgspec import Struct

from moldau.core.errors import ProtocolViolation
from moldau.groups.schemas import SHORT, version_of
from moldau.wire.codec import decode, encode
from moldau.wire.schema import IGNORABLE, NEVER, Bytes, Int32, Message, nullable, since

M = TypeVar("M", bound=Message)

VERSION_MAX = 3


class TopicPartitions(Struct, gc=False):
    topic: str = ""
    partitions: list[Int32] = []


class Subscription(Struct, gc=False):
    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, VERSION_MAX)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    topics: list[str] = []
    user_data: Bytes | None = None
    owned_partitions: Annotated[list[TopicPartitions], since(1), IGNORABLE] = []
    """What a cooperative member has; one that gave everything up before it joined has nothing."""
    generation: Annotated[Int32, since(2), IGNORABLE] = -1
    rack_id: Annotated[str | None, since(3), nullable(3), IGNORABLE] = None


class Assigned(Struct, gc=False):
    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, VERSION_MAX)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    partitions: list[TopicPartitions] = []
    user_data: Bytes | None = None


def read_subscription(data: bytes) -> Subscription:
    """Raises ProtocolViolation."""
    return _read(Subscription, data)


def read_assignment(data: bytes) -> Assigned:
    """Raises ProtocolViolation."""
    return _read(Assigned, data)


def write_assignment(partitions: Mapping[str, list[int]], subscription: bytes) -> bytes:
    """In the version that the member subscribed with."""
    version = min(version_of(memoryview(subscription)), VERSION_MAX)
    named = [TopicPartitions(topic, numbers) for topic, numbers in partitions.items()]
    return SHORT.pack(version) + encode(Assigned(named), version)


def _read(kind: type[M], data: bytes) -> M:
    """A newer version only adds to what we know, so its beginning is read."""
    view = memoryview(data)
    version = version_of(view)
    if version < 0:
        raise ProtocolViolation(f"version {version} of the consumers' protocol")
    value, _ = decode(kind, min(version, VERSION_MAX), view, SHORT.size)
    return value
