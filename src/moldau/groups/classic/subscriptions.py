"""Reading a consumer's subscription, which is the clients' business but tells us which offsets are in use."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from moldau.core.limits import ELEMENTS_MAX
from moldau.groups.classic.group import Group

_VERSION_AND_COUNT = struct.Struct(">hi")
_LENGTH = struct.Struct(">h")


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """The topics that the members of this generation consume; None if that can't be known."""
    if not group.is_consumer or (group.members and group.protocol_name is None):
        return None
    protocol = group.protocol_name or ""
    return read_topics(member.metadata(protocol) for member in group.members.values())


def read_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics named by the common beginning of all versions of ConsumerProtocolSubscription."""
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            _, count = _VERSION_AND_COUNT.unpack_from(subscription)
            at = _VERSION_AND_COUNT.size
            if not 0 <= count <= min(len(subscription), ELEMENTS_MAX):
                return None
            for _ in range(count):
                (size,) = _LENGTH.unpack_from(subscription, at)
                at += _LENGTH.size
                if not 0 <= size <= len(subscription) - at:
                    return None
                topics.add(subscription[at : at + size].decode())
                at += size
    except (struct.error, UnicodeDecodeError):
        return None
    return frozenset(topics)
