"""Commits as they happen, read from `__consumer_offsets`: each with its own time, and those that repeat an offset too.

Whether it can be read is for the cluster's ACLs to say. Where it can't, offsets that groups have are polled instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from moldau.client.cluster import Cluster, NoAnswer, Refused, words_of
from moldau.core.errors import ApiError, ErrorCode, ProtocolViolation
from moldau.core.ids import TopicPartition
from moldau.groups.records import OffsetCommitted, OffsetDeleted, decode_fact
from moldau.monitor.sampling.batches import next_offset, records_from
from moldau.monitor.sampling.topics import END, FETCH_BYTES, Layout, fetched, offsets_at
from moldau.wire.records import Record

OFFSETS_TOPIC = "__consumer_offsets"
BACKFILL_MS = 600_000
"""What is read of the time before the first look: windows of consumers that commit every minute are full at once."""
ANSWERS_PER_LOOK_MAX = 8  # for each broker: 32 MB, some 200,000 commits, which take about 8 s


class SeenCommit(msgspec.Struct, frozen=True, gc=False):
    group: str
    place: TopicPartition
    offset: int | None
    """None: the offset was deleted, or expired."""
    timestamp_ms: int
    order: int
    """Among all commits of this group: the record's own offset."""


@dataclass(slots=True)
class CommitReader:
    is_wanted: bool = True
    positions: dict[int, int] = field(default_factory=dict)
    can_read: bool = False
    is_caught_up: bool = False
    records_read: int = 0

    def read(self, cluster: Cluster, known: Layout, now_ms: int, problems: list[str]) -> list[SeenCommit]:
        topic = known.topics.get(OFFSETS_TOPIC)
        if topic is None or not self.is_wanted:  # no group has committed yet, or the topic is hidden from us
            self.can_read = self.is_caught_up = False
            return []
        self._begin(cluster, known, now_ms, problems)
        self.can_read = self.is_caught_up = True
        found: list[SeenCommit] = []
        places = [TopicPartition(OFFSETS_TOPIC, partition) for partition in self.positions]
        for leader, theirs in known.by_leader(places).items():
            try:
                for commits in self._of_leader(cluster, known, leader, theirs, problems):
                    found += commits
            except (NoAnswer, Refused, ProtocolViolation, ApiError) as wrong:
                problems.append(f"{OFFSETS_TOPIC}: {wrong}")
                self.is_caught_up = False
        return found

    def _begin(self, cluster: Cluster, known: Layout, now_ms: int, problems: list[str]) -> None:
        new = [
            each.place for each in known.topics[OFFSETS_TOPIC].partitions if each.place.partition not in self.positions
        ]
        if not new:
            return
        found = offsets_at(cluster, known, new, now_ms - BACKFILL_MS, problems)
        later = [place for place, offset in found.items() if offset < 0]
        found |= offsets_at(cluster, known, later, END, problems)
        self.positions.update({place.partition: offset for place, offset in found.items() if offset >= 0})

    def _of_leader(
        self, cluster: Cluster, known: Layout, leader: int, places: Iterable[TopicPartition], problems: list[str]
    ) -> Iterator[list[SeenCommit]]:
        left = {place: self.positions[place.partition] for place in places}
        for _ in range(ANSWERS_PER_LOOK_MAX):
            if not left:
                return
            answered = fetched(cluster, known, leader, left, partition_bytes=FETCH_BYTES, read_committed=True)
            for place, data in answered:
                if data.error_code != ErrorCode.NONE:
                    self._refused(place, data.error_code, problems)
                    left.pop(place, None)
                    continue
                commits = [_commit(each) for each in records_from(data, self.positions[place.partition])]
                self.records_read += len(commits)
                yield [each for each in commits if each is not None]
                following = next_offset(data)
                if following is not None:
                    self.positions[place.partition] = following
                del left[place]
                if self.positions[place.partition] < data.last_stable_offset:
                    left[place] = self.positions[place.partition]  # behind the others
        self.is_caught_up = self.is_caught_up and not left

    def _refused(self, place: TopicPartition, code: int, problems: list[str]) -> None:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            del self.positions[place.partition]
        elif code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            self.can_read = self.is_caught_up = False
        else:
            self.is_caught_up = False
        problem = f"{OFFSETS_TOPIC}: {words_of(code)}"
        if problem not in problems:
            problems.append(problem)


def _commit(record: Record) -> SeenCommit | None:
    """None for what else is written there, and for what no version of Kafka writes."""
    key, value = memoryview(record.key or b""), None if record.value is None else memoryview(record.value)
    try:
        fact = decode_fact(key, value)
    except ProtocolViolation:
        return None
    if isinstance(fact, OffsetCommitted):
        place = TopicPartition(fact.topic, fact.partition)
        return SeenCommit(fact.group_id, place, fact.committed.offset, fact.committed.commit_ms, record.offset)
    if isinstance(fact, OffsetDeleted):
        return SeenCommit(fact.group_id, TopicPartition(fact.topic, fact.partition), None, 0, record.offset)
    return None
