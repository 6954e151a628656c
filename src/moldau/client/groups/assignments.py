"""The bytes by which classic consumers tell each other who has what; a broker hands them on unread."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.core.errors import ProtocolViolation
from moldau.core.ids import TopicPartition
from moldau.wire.codec import decode
from moldau.wire.schema import NEVER, Int16, Int32


class AssignedTopic(Struct, gc=False):
    topic: str = ""
    partitions: list[Int32] = []


class Assigned(Struct, gc=False):
    """What every version of it begins with, up to the user data, which is nobody's but the assignor's."""

    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    version: Int16 = 0
    topics: list[AssignedTopic] = []


def assigned(data: bytes) -> tuple[TopicPartition, ...]:
    """Nothing for a member that was assigned nothing yet, and for bytes that are no assignment."""
    try:
        found, _ = decode(Assigned, 0, data)
    except ProtocolViolation:
        return ()
    return tuple(sorted(TopicPartition(each.topic, number) for each in found.topics for number in each.partitions))
