"""Whether a log directory can be used: a table of states and what changes them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from moldau.log.failure import Verdict


class State(Enum):
    ONLINE = "online"
    FULL = "full"
    """Its partitions serve readers and take what fits; a new partition goes elsewhere if it can."""
    OFFLINE = "offline"
    """Its partitions answer KAFKA_STORAGE_ERROR. Only a start, which reads the files again, brings it back."""


class Event(Enum):
    NO_ROOM = "no room"
    FAILED = "failed"
    WRITTEN = "written"


NEXT: Mapping[tuple[State, Event], State] = MappingProxyType(
    {
        (State.ONLINE, Event.NO_ROOM): State.FULL,
        (State.ONLINE, Event.FAILED): State.OFFLINE,
        (State.ONLINE, Event.WRITTEN): State.ONLINE,
        (State.FULL, Event.NO_ROOM): State.FULL,
        (State.FULL, Event.FAILED): State.OFFLINE,
        (State.FULL, Event.WRITTEN): State.ONLINE,
        (State.OFFLINE, Event.NO_ROOM): State.OFFLINE,
        (State.OFFLINE, Event.FAILED): State.OFFLINE,
        (State.OFFLINE, Event.WRITTEN): State.OFFLINE,
    }
)

EVENTS: Mapping[Verdict, Event] = MappingProxyType({Verdict.NO_ROOM: Event.NO_ROOM, Verdict.OFFLINE: Event.FAILED})
"""A refusal that says nothing of the disk (`Verdict.RETRY`) is no event."""
