"""When somebody is told: on a change, and now and then while it stays bad. Pure functions that take the time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import msgspec

from moldau.monitor.rules import Status


class Event(Enum):
    OPEN = "open"
    AGAIN = "again"
    CLOSE = "close"


class Incident(msgspec.Struct, frozen=True):
    """A group in trouble, from its first verdict that is not OK to the next one that is."""

    id: str
    since_ms: int
    status: Status
    told_ms: int


@dataclass(frozen=True, slots=True)
class When:
    threshold: Status = Status.WARN
    every_s: float = 60.0
    """While it stays bad."""
    once: bool = False
    """Nothing more is sent of an incident until it is over."""
    send_close: bool = True


def decided(
    incident: Incident | None, status: Status, when: When, *, now_ms: int, new_id: str
) -> tuple[Incident | None, Event | None]:
    """The incident from now on, and what is to be told."""
    if status <= Status.OK:  # a group that is gone is in no trouble either
        return None, Event.CLOSE if incident is not None and when.send_close else None
    if status < when.threshold:
        return incident, None
    if incident is None:
        return Incident(new_id, now_ms, status, now_ms), Event.OPEN
    is_due = incident.status != status or now_ms - incident.told_ms >= when.every_s * 1_000
    if when.once or not is_due:
        return incident, None
    return Incident(incident.id, incident.since_ms, status, now_ms), Event.AGAIN
