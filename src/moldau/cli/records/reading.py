"""Partitions are read without a group, from their leaders: to the end of a range, or on and on as topics change."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from moldau.cli.failures import CommandFailed
from moldau.cli.records import offsets
from moldau.cli.records.printing import Sink
from moldau.cli.records.selection import Found, Selection, missing_topic
from moldau.client.cluster import Cluster, NoAnswer, Refused
from moldau.client.fetched import FetchedRecord, read_partition
from moldau.client.listing import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from moldau.client.reading import Failed, Read, Reader
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition

POLL_S = 0.25  # how long Ctrl-C may have to wait
LOOK_S = 1.0  # between two looks at the topics

Offsets = dict[TopicPartition, int]


class Idle(Exception):
    """Nothing came for as long as the caller wanted to wait."""


Records: TypeAlias = list[FetchedRecord]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is read, and until when: `follows` has new partitions and topics join, and tells of those that go."""

    selection: Selection
    bounds: offsets.Range
    is_committed: bool = False
    exits_at_end: bool = False
    idle_s_max: float | None = None
    tool: str = "consume"

    @property
    def isolation(self) -> int:
        return READ_COMMITTED if self.is_committed else READ_UNCOMMITTED

    @property
    def is_finite(self) -> bool:
        return self.exits_at_end or self.bounds.end is not None


def read_assigned(cluster: Cluster, wanted: Wanted, sink: Sink) -> None:
    """Until the sink is full or every end is reached; else for ever. `Idle` after a time without records."""
    reader = Reader(cluster, decode=read_partition, isolation=wanted.isolation)
    try:
        _Reading(cluster, reader, wanted, sink).run()
    finally:
        reader.close()


class _Reading:
    def __init__(self, cluster: Cluster, reader: Reader[Records], wanted: Wanted, sink: Sink) -> None:
        self.cluster = cluster
        self.reader = reader
        self.wanted = wanted
        self.sink = sink
        self.ends: Offsets = {}
        self.found = Found()
        self.is_lost = False
        self.look_at_s = 0.0

    def run(self) -> None:
        self._begin()
        last_s = time.monotonic()
        while not self.sink.is_full and not (self.wanted.is_finite and not self.reader.positions):
            event = self.reader.next(timeout_s=POLL_S)
            if event is not None:
                self._take(event)
                last_s = time.monotonic()
            elif self.wanted.idle_s_max is not None and time.monotonic() - last_s > self.wanted.idle_s_max:
                raise Idle
            self._tell_of_outage()
            if not self.wanted.is_finite and time.monotonic() >= self.look_at_s:
                self._look_again()

    def _begin(self) -> None:
        self.found = self.wanted.selection.look(self.cluster)
        if not self.wanted.selection.may_create:
            self.wanted.selection.check(self.found)
        else:
            for name in self.wanted.selection.names:
                if name not in self.found.topics:
                    self._say(f"topic {name!r} does not exist; waiting for it")
                elif not any(place.topic == name for place in self.found.places):
                    self._say(f"topic {name!r} has no such partition; waiting for it")
        starts, self.ends = bounds_of(self.cluster, self.found.places, self.wanted)
        self.reader.add({place: at for place, at in starts.items() if at < self.ends.get(place, at + 1)})
        self.look_at_s = time.monotonic() + LOOK_S

    def _take(self, event: Read[Records] | Failed) -> None:
        if isinstance(event, Failed):
            self._failed(event)
            return
        end = self.ends.get(event.place)
        for record in event.records:
            if self.sink.is_full or (end is not None and record.offset >= end):
                break
            self.sink.take(record)
        self.sink.flush()
        if end is not None and event.next_offset >= end:
            self.reader.drop([event.place])

    def _failed(self, event: Failed) -> None:
        if event.code != ErrorCode.OFFSET_OUT_OF_RANGE:
            raise CommandFailed(f"{event.place}: {event.told}")
        start = list_offsets(self.cluster, {event.place: EARLIEST})[event.place]
        self._say(f"{event.place}: what was to be read was deleted; going on at offset {start}")
        if start < self.ends.get(event.place, start + 1):
            self.reader.add({event.place: start})

    def _tell_of_outage(self) -> None:
        is_lost = self.reader.lost is not None
        if is_lost and self.wanted.is_finite:
            raise CommandFailed("the end can't be reached: every broker is gone")
        if is_lost and not self.is_lost:
            self._say(f"no broker answers at {self.cluster.servers}; waiting for one")
        self.is_lost = is_lost

    def _look_again(self) -> None:
        self.look_at_s = time.monotonic() + LOOK_S
        if self.is_lost:
            return
        try:
            found = self.wanted.selection.look(self.cluster)
            again = {
                name for name, topic_id in found.topics.items() if self.found.topics.get(name, topic_id) != topic_id
            }
            self._drop_topics(again | (self.found.topics.keys() - found.topics.keys()), again)
            new = {place for place in found.places if place not in self.found.places or place.topic in again}
            if new:
                self.reader.add(list_offsets(self.cluster, dict.fromkeys(new, EARLIEST)))
        except (NoAnswer, Refused):
            return  # the next look may see more; what is lost for long, the reader tells
        self.found = found
        if not found.topics and self.wanted.selection.names and not self.wanted.selection.may_create:
            raise CommandFailed(f"nothing is left to read: {missing_topic(self.wanted.selection.names[0])}")

    def _drop_topics(self, gone: Iterable[str], again: Iterable[str]) -> None:
        for topic in sorted(gone):
            self.reader.drop([place for place in self.found.places if place.topic == topic])
            self._say(f"topic {topic!r} was deleted" + (", and created again" if topic in again else ""))

    def _say(self, what: str) -> None:
        self.sink.flush()
        print(f"moldau {self.wanted.tool}: {what}", file=sys.stderr, flush=True)


def bounds_of(cluster: Cluster, places: Iterable[TopicPartition], wanted: Wanted) -> tuple[Offsets, Offsets]:
    """Where each partition begins to be read, and ends; an end is missing where there is none."""
    places = sorted(places)
    low = list_offsets(cluster, dict.fromkeys(places, EARLIEST))
    high = list_offsets(cluster, dict.fromkeys(places, LATEST), isolation=wanted.isolation)
    start, end = wanted.bounds.start, wanted.bounds.end
    times = {each.number for each in (start, end) if each is not None and each.anchor is offsets.Anchor.TIMESTAMP_MS}
    at_times = {at: list_offsets(cluster, dict.fromkeys(places, at), isolation=wanted.isolation) for at in times}
    starts: Offsets = {}
    ends: Offsets = {}
    for place in places:

        def offset_at(timestamp_ms: int, place: TopicPartition = place) -> int | None:
            offset = at_times[timestamp_ms][place]
            return offset if offset >= 0 else None

        try:
            starts[place], last = offsets.resolve_range(
                wanted.bounds, low=low[place], high=high[place], offset_at=offset_at
            )
        except offsets.OutOfRange as wrong:
            raise CommandFailed(f"{place}: {wrong}") from None
        if wanted.is_finite:
            ends[place] = high[place] if last is None else last
    return starts, ends
