"""The assignors that the server runs for groups of the consumer protocol: pure functions of members and topics.

*Range* gives each subscriber of a topic one run of its partitions, in the order of instance ids and then of member ids,
so that topics with as many partitions and the same subscribers are split alike.

*Uniform* gives every member as many partitions as any other, as far as their subscriptions allow, and moves as few as
that takes. Topics that the same members subscribe to are one pool; a group whose members all subscribe to the same
topics has just one, and is balanced to within one partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from types import MappingProxyType
from typing import NamedTuple

Assignment = Mapping[bytes, frozenset[int]]

PASSES_MAX = 16
"""Pools share members, so that balancing one may tilt another. Kafka stops after as many rounds too."""


class TopicShape(NamedTuple):
    topic_id: bytes
    partition_count: int


class MemberSpec(NamedTuple):
    member_id: str
    instance_id: str | None
    subscribed: frozenset[bytes]
    owned: Assignment
    """What the member was given last, whether it has it yet or not."""


Assignor = Callable[[Sequence[MemberSpec], Mapping[bytes, TopicShape]], dict[str, Assignment]]


def assign_range(members: Sequence[MemberSpec], topics: Mapping[bytes, TopicShape]) -> dict[str, Assignment]:
    given: dict[str, dict[bytes, frozenset[int]]] = {member.member_id: {} for member in members}
    ordered = sorted(members, key=_range_order)
    for topic_id, shape in topics.items():
        subscribers = [member.member_id for member in ordered if topic_id in member.subscribed]
        if not subscribers:
            continue
        share, extra = divmod(shape.partition_count, len(subscribers))
        start = 0
        for place, member_id in enumerate(subscribers):
            end = start + share + (place < extra)
            if end > start:
                given[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return dict(given)


def _range_order(member: MemberSpec) -> tuple[bool, str]:
    """Members that come back under the same instance id come back to the same place, so they are counted first."""
    return member.instance_id is None, member.instance_id or member.member_id


def assign_uniform(members: Sequence[MemberSpec], topics: Mapping[bytes, TopicShape]) -> dict[str, Assignment]:
    ordered = sorted(members, key=lambda member: member.member_id)
    loads = [0] * len(ordered)
    pools = _pools(ordered, topics)
    for pool in pools:
        pool.keep(ordered, loads)
    for pool in pools:
        pool.deal(loads)
    _balance(pools, loads)
    given: list[dict[bytes, set[int]]] = [{} for _ in ordered]
    for pool in pools:
        for index, partitions in pool.held.items():
            for topic_id, partition in partitions:
                given[index].setdefault(topic_id, set()).add(partition)
    return {
        member.member_id: {topic_id: frozenset(partitions) for topic_id, partitions in given[index].items()}
        for index, member in enumerate(ordered)
    }


ASSIGNORS: Mapping[str, Assignor] = MappingProxyType({"uniform": assign_uniform, "range": assign_range})
"""By the names that members ask for them with; the first is taken for members that ask for none."""


class _Pool:
    """The topics of one set of subscribers. Members are numbers: their places in the order of their ids."""

    __slots__ = ("held", "shapes", "subscribers", "unassigned")

    def __init__(self, subscribers: tuple[int, ...], shapes: list[TopicShape]) -> None:
        self.subscribers = subscribers
        self.shapes = shapes
        self.held: dict[int, list[tuple[bytes, int]]] = {index: [] for index in subscribers}
        """By member; what it had before comes first and so is taken from it last."""
        self.unassigned: list[tuple[bytes, int]] = []

    @property
    def scarcity(self) -> tuple[float, int]:
        """Pools with most work for each of few subscribers come first: the others can even out what they cause."""
        return -sum(shape.partition_count for shape in self.shapes) / len(self.subscribers), len(self.subscribers)

    def keep(self, members: Sequence[MemberSpec], loads: list[int]) -> None:
        """Leave everything where it is, if that member still subscribes and the partition exists."""
        for topic_id, count in self.shapes:
            free = set(range(count))
            for index in self.subscribers:
                kept = free.intersection(members[index].owned.get(topic_id, ()))
                free -= kept
                loads[index] += len(kept)
                self.held[index] += [(topic_id, partition) for partition in sorted(kept)]
            self.unassigned += [(topic_id, partition) for partition in sorted(free)]

    def deal(self, loads: list[int]) -> None:
        """Give each free partition to the subscriber with the least."""
        if not self.unassigned:
            return
        least = [(loads[index], index) for index in self.subscribers]
        heapify(least)
        for partition in self.unassigned:
            load, index = heappop(least)
            self.held[index].append(partition)
            loads[index] = load + 1
            heappush(least, (load + 1, index))

    def balance(self, loads: list[int]) -> bool:
        """Move from the member with most to the one with least until they differ by one; whether anything moved."""
        # Whoever is loaded otherwise than its entry says has another entry, so an entry that is old is dropped.
        least = [(loads[index], index) for index in self.subscribers]
        most = [(-loads[index], index) for index in self.subscribers if self.held[index]]
        heapify(least)
        heapify(most)
        has_moved = False
        while most:
            negative_load, giver = heappop(most)
            if -negative_load != loads[giver] or not self.held[giver]:
                continue
            while least[0][0] != loads[least[0][1]]:
                heappop(least)
            load, taker = least[0]
            if loads[giver] - load <= 1:
                break
            self.held[taker].append(self.held[giver].pop())
            for index, change in ((giver, -1), (taker, 1)):
                loads[index] += change
                heappush(most, (-loads[index], index))
                heappush(least, (loads[index], index))
            has_moved = True
        return has_moved


def _pools(members: Sequence[MemberSpec], topics: Mapping[bytes, TopicShape]) -> list[_Pool]:
    subscribers: dict[bytes, list[int]] = {}
    for index, member in enumerate(members):
        for topic_id in member.subscribed:
            subscribers.setdefault(topic_id, []).append(index)
    shapes: dict[tuple[int, ...], list[TopicShape]] = {}
    for topic_id in sorted(subscribers):
        if topic_id in topics:
            shapes.setdefault(tuple(subscribers[topic_id]), []).append(topics[topic_id])
    return sorted((_Pool(who, what) for who, what in shapes.items()), key=lambda pool: pool.scarcity)


def _balance(pools: Sequence[_Pool], loads: list[int]) -> None:
    shared = [pool for pool in pools if len(pool.subscribers) > 1]
    for _ in range(PASSES_MAX):
        if sum(pool.balance(loads) for pool in shared) == 0:
            return
