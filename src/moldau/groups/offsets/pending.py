"""Offsets that were committed in transactions which are still open: they count once the transaction is committed."""

from __future__ import annotations

from collections.abc import Collection

from moldau.groups.records import CommittedOffset, OffsetCommitted, OffsetPending

GroupTopicPartition = tuple[str, str, int]  # group, topic, partition


class PendingOffsets:
    """By producer. Every commit has a number in the order of the log, because the later of two wins whenever its
    transaction ends."""

    __slots__ = ("_by_group", "_by_producer", "_latest", "_number", "_open")

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[GroupTopicPartition, tuple[int, CommittedOffset]]] = {}
        self._open: dict[GroupTopicPartition, set[int]] = {}  # the producers that have something pending at a place
        self._latest: dict[GroupTopicPartition, int] = {}  # the number of the last commit that counts, where one pends
        self._by_group: dict[str, dict[tuple[str, int], None]] = {}  # the places of `_open`
        self._number = 0

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def add(self, fact: OffsetPending) -> None:
        place = (fact.group_id, fact.topic, fact.partition)
        self._number += 1
        self._by_producer.setdefault(fact.producer_id, {})[place] = (self._number, fact.committed)
        self._open.setdefault(place, set()).add(fact.producer_id)
        self._by_group.setdefault(fact.group_id, {})[fact.topic, fact.partition] = None

    def overtaken(self, fact: OffsetCommitted) -> None:
        """A commit outside of transactions counts at once, and what is pending from before it never will."""
        place = (fact.group_id, fact.topic, fact.partition)
        if place in self._open:
            self._number += 1
            self._latest[place] = self._number

    def end(self, producer_id: int, *, is_commit: bool) -> list[OffsetCommitted]:
        """Close a producer's transaction; gives the offsets that count from now on."""
        counted = []
        for place, (number, committed) in self._by_producer.pop(producer_id, {}).items():
            if is_commit and number > self._latest.get(place, 0):
                self._latest[place] = number
                counted.append(OffsetCommitted(*place, committed))
            self._close(place, producer_id)
        return counted

    def forget(self, place: GroupTopicPartition) -> None:
        """The offset is deleted, also for those transactions that wanted to set it."""
        for producer_id in tuple(self._open.get(place, ())):
            del self._by_producer[producer_id][place]
            self._close(place, producer_id)

    def _close(self, place: GroupTopicPartition, producer_id: int) -> None:
        producers = self._open[place]
        producers.discard(producer_id)
        if not producers:
            del self._open[place]
            group_id, topic, partition = place
            places = self._by_group[group_id]
            del places[topic, partition]
            if not places:
                del self._by_group[group_id]
            self._latest.pop(place, None)

    def has(self, group_id: str, topic: str, partition: int) -> bool:
        return (group_id, topic, partition) in self._open

    def of_group(self, group_id: str) -> Collection[tuple[str, int]]:
        return self._by_group.get(group_id, ())
