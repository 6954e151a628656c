"""What members told, judged: who owned which partition when, and what was read more than once or not at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

Partition = tuple[str, int]
FOREVER_US = 2**63


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a member; `ended` is the harness's own, when the process is gone."""

    at_us: int
    member: str
    kind: str
    content: Mapping[str, Any]

    @property
    def partitions(self) -> frozenset[Partition]:
        return frozenset((topic, index) for topic, index in self.content.get("partitions", ()))


class Tenure(NamedTuple):
    from_us: int
    until_us: int
    member: str


class Reading(NamedTuple):
    at_us: int
    member: str
    first: int
    last: int
    is_committed: bool
    is_lost: bool = False
    """Whether its member lost the partition before it could commit."""


def owned(events: Iterable[Event]) -> frozenset[Partition]:
    """What one member has after these events of it."""
    partitions: frozenset[Partition] = frozenset()
    for event in events:
        if event.kind == "assigned":
            partitions |= event.partitions
        elif event.kind in ("revoked", "lost"):
            partitions -= event.partitions
        elif event.kind == "ended":
            partitions = frozenset()
    return partitions


def tenures(histories: Iterable[Sequence[Event]]) -> dict[Partition, list[Tenure]]:
    """For each partition who had it from when to when, by the members' own words."""
    found: dict[Partition, list[Tenure]] = defaultdict(list)
    for history in histories:
        since: dict[Partition, int] = {}
        for event in history:
            if event.kind == "assigned":
                since |= {each: event.at_us for each in event.partitions if each not in since}
            gone = (
                set(since) if event.kind == "ended" else event.partitions if event.kind in ("revoked", "lost") else ()
            )
            for each in gone:
                if each in since:
                    found[each].append(Tenure(since.pop(each), event.at_us, event.member))
        for each, from_us in since.items():
            found[each].append(Tenure(from_us, FOREVER_US, history[-1].member))
    return found


def conflicts(histories: Iterable[Sequence[Event]]) -> list[tuple[Partition, Tenure, Tenure]]:
    """Every partition that two members had at once."""
    return [
        (partition, earlier, later)
        for partition, held in tenures(histories).items()
        for earlier, later in pairwise(sorted(held))
        if later.from_us < earlier.until_us
    ]


def readings(histories: Iterable[Sequence[Event]]) -> dict[Partition, list[Reading]]:
    """What was read of each partition, in the order of time."""
    found: dict[Partition, list[Reading]] = defaultdict(list)
    for history in histories:
        for event, outcome in outcomes(history):
            for topic, index, first, last in event.content["spans"]:
                reading = Reading(event.at_us, event.member, first, last, outcome == "committed", outcome == "lost")
                found[topic, index].append(reading)
    return {partition: sorted(read) for partition, read in found.items()}


def outcomes(history: Sequence[Event]) -> Iterator[tuple[Event, str]]:
    """A commit is of everything that its member read since the last one."""
    pending: list[Event] = []
    for event in history:
        if event.kind == "read":
            pending.append(event)
        elif event.kind in ("committed", "failed", "lost", "ended"):
            yield from ((each, event.kind) for each in pending)
            pending = []
    yield from ((each, "unknown") for each in pending)


def unread(ends: Mapping[Partition, int], histories: Iterable[Sequence[Event]]) -> dict[Partition, list[int]]:
    """Offsets below each partition's end that nobody read."""
    found = readings(histories)
    missing: dict[Partition, list[int]] = {}
    for partition, end in ends.items():
        seen = {offset for read in found.get(partition, ()) for offset in range(read.first, read.last + 1)}
        absent = sorted(set(range(end)) - seen)
        if absent:
            missing[partition] = absent
    return missing


def repeated(histories: Iterable[Sequence[Event]], *, committed_only: bool) -> list[tuple[Partition, Reading, Reading]]:
    """Readings that overlap an earlier one of their partition; with `committed_only` one that had been committed.

    What a member lost is read again, whoever has the partition then: it could not be committed.
    """
    return [
        (partition, earlier, later)
        for partition, read in readings(histories).items()
        for number, later in enumerate(read)
        for earlier in read[:number]
        if later.first <= earlier.last and earlier.first <= later.last
        if earlier.is_committed or not (committed_only or earlier.is_lost)
    ]
