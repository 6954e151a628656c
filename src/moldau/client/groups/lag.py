"""How far groups are behind: the ends of logs less what was committed, for what members have and what nobody has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from moldau.client.cluster import Cluster, Refused
from moldau.client.groups.asking import Answers
from moldau.client.groups.committed import Committed, committed_offsets
from moldau.client.groups.describing import Group, Member, describe_groups
from moldau.client.offsets import ends
from moldau.core.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionLag:
    place: TopicPartition
    committed: Committed | None
    end: int | None
    """None while nobody leads the partition, or where it is gone."""
    member: Member | None

    @property
    def offset(self) -> int | None:
        return self.committed.offset if self.committed else None

    @property
    def lag(self) -> int | None:
        return None if self.end is None or self.committed is None else self.end - self.committed.offset


@dataclass(frozen=True, slots=True)
class GroupLag:
    group: Group
    partitions: tuple[PartitionLag, ...]

    @property
    def total(self) -> int | None:
        """Of the partitions whose lag is known; None if there is none of them."""
        known = [each.lag for each in self.partitions if each.lag is not None]
        return sum(known) if known else None


def partition_lags(
    group: Group, committed: Mapping[TopicPartition, Committed], end_offsets: Mapping[TopicPartition, int]
) -> tuple[PartitionLag, ...]:
    """First what members have, those with the most partitions before others; then what was committed and nobody has."""

    def lag(place: TopicPartition, member: Member | None) -> PartitionLag:
        return PartitionLag(place, committed.get(place), end_offsets.get(place), member)

    busy = sorted((each for each in group.members if each.assignment), key=lambda each: -len(each.assignment))
    held = {place for member in busy for place in member.assignment}
    return (
        *(lag(place, member) for member in busy for place in member.assignment),
        *(lag(place, None) for place in sorted(committed) if place not in held),
    )


def group_lags(cluster: Cluster, groups: Iterable[str]) -> Answers[GroupLag]:
    """Of many groups with few questions: descriptions, offsets, and the ends of all their partitions at once."""
    described = describe_groups(cluster, groups)
    known = [group for group, each in described.items() if isinstance(each, Group)]
    committed = committed_offsets(cluster, known)
    places: dict[TopicPartition, None] = {}
    for group, each in described.items():
        if isinstance(each, Group):
            places.update({place: None for member in each.members for place in member.assignment})
        offsets = committed.get(group)
        if isinstance(offsets, dict):
            places.update(dict.fromkeys(offsets))
    end_offsets, _ = ends(cluster, places)
    return {group: _group_lag(each, committed.get(group), end_offsets) for group, each in described.items()}


def _group_lag(
    group: Group | Refused,
    committed: Mapping[TopicPartition, Committed] | Refused | None,
    end_offsets: Mapping[TopicPartition, int],
) -> GroupLag | Refused:
    if isinstance(group, Refused):
        return group
    if isinstance(committed, Refused):
        return committed
    return GroupLag(group, partition_lags(group, committed or {}, end_offsets))
