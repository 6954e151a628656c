"""Work over everything that groups committed, in slices: expiry, and the end of groups and topics with many offsets.

A slice is decided on the state of its moment, because others decide in between. What is written down at the start is
only where to look, and every place is looked up again when its turn comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from moldau.core.decision import Decision, Slices, Timer
from moldau.core.ids import ZERO_UUID
from moldau.groups.offsets.classic import GroupOffsets
from moldau.groups.records import CommittedOffset, Fact, OffsetDeleted

SLICE_OFFSETS = 200  # to delete so many takes two milliseconds, and to write that down as much again
SLICE_LOOKS = 2_000  # to find nothing at so many places takes a few

OffsetsOf: TypeAlias = Callable[[str], GroupOffsets]
# What has expired of a group if these were all of its offsets; the group's own end comes last.
ExpiredOf: TypeAlias = Callable[[str, GroupOffsets], list[Fact]]


def expiring(group_ids: Iterable[str], offsets_of: OffsetsOf, expired_of: ExpiredOf, *, again: Timer) -> Slices[None]:
    """Decide for one group after the other, and for a large one part by part."""
    facts: list[Fact] = []
    looks = 0
    for group_id in group_ids:
        if size_of(offsets_of(group_id)) > SLICE_OFFSETS:
            yield Decision(facts, None, is_whole=False)  # they must not wait while others decide
            facts, looks = [], 0
            for part in _parts(offsets_of, group_id):
                # That a part is all that the group has is not true, so nothing follows from it for the group.
                expired = expired_of(group_id, part)
                yield Decision([fact for fact in expired if isinstance(fact, OffsetDeleted)], None, is_whole=False)
            if size_of(offsets_of(group_id)) > SLICE_OFFSETS:
                continue  # plenty is left of it
        facts += expired_of(group_id, offsets_of(group_id))
        looks += 1 + size_of(offsets_of(group_id))
        if len(facts) >= SLICE_OFFSETS or looks >= SLICE_LOOKS:
            yield Decision(facts, None, is_whole=False)
            facts, looks = [], 0
    return Decision(facts, None, (again,), is_whole=False)


def deleting_topics(group_ids: Iterable[str], offsets_of: OffsetsOf, gone: Mapping[str, bytes]) -> Slices[None]:
    """Forget all offsets of topics that are gone, which are given with their ids.

    There may be another topic of that name by now, and what was committed for that one stays.
    """
    facts: list[OffsetDeleted] = []
    looks = 0
    for group_id in group_ids:
        for topic in gone.keys() & offsets_of(group_id).keys():
            ids = (ZERO_UUID, gone[topic])
            for partition in tuple(offsets_of(group_id).get(topic, ())):
                committed = offsets_of(group_id).get(topic, {}).get(partition)
                if committed is not None and committed.topic_id in ids:
                    facts.append(OffsetDeleted(group_id, topic, partition))
                if len(facts) == SLICE_OFFSETS:
                    yield Decision(facts, None, is_whole=False)
                    facts, looks = [], 0
        looks += 1
        if looks == SLICE_LOOKS:
            yield Decision(facts, None, is_whole=False)
            facts, looks = [], 0
    return Decision(facts, None, is_whole=False)


def drained(offsets: dict[str, dict[int, CommittedOffset]]) -> Iterator[tuple[str, int]]:
    """The place of each offset, which is gone then: a million of them are not let go at once."""
    for topic, committed in offsets.items():
        while committed:
            yield topic, committed.popitem()[0]


def size_of(offsets: GroupOffsets) -> int:
    return sum(map(len, offsets.values()))


def _parts(offsets_of: OffsetsOf, group_id: str) -> Iterator[Mapping[str, Mapping[int, CommittedOffset]]]:
    """All offsets that a group has at the start and still when their part comes."""
    part: dict[str, dict[int, CommittedOffset]] = {}
    size = 0
    for topic in tuple(offsets_of(group_id)):
        partitions = tuple(offsets_of(group_id).get(topic, ()))
        at = 0
        while at < len(partitions):
            committed = offsets_of(group_id).get(topic, {})
            chosen = partitions[at : at + SLICE_OFFSETS - size]
            part[topic] = {partition: committed[partition] for partition in chosen if partition in committed}
            at += len(chosen)
            size += len(chosen)
            if size == SLICE_OFFSETS:
                yield part
                part, size = {}, 0
    if part:
        yield part
