"""A consumer group: the broker assigns, and members come to their part of it one step at a time.

    Empty       nobody is a member
    Assigning   the group's epoch is ahead of the target's: another assignment is due
    Reconciling somebody has not come to the target yet
    Stable      everybody has

The state follows from the facts and is not stored. Only `apply` changes a group; a decision works on a copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from msgspec.structs import replace

from moldau.groups.consumer.facts import (
    ConsumerFact,
    GroupEpochSet,
    OldMetadataSet,
    ProfileSet,
    ProgressSet,
    RegexSet,
    ResolvedRegex,
    TargetEpochSet,
    TargetSet,
    TopicsChecked,
    ViewerSet,
)
from moldau.groups.consumer.members import ConsumerMember, Partitions, Progress

V = TypeVar("V")

FIRST_EPOCH = 1
NO_GROUP_EPOCH = -1
NEVER_CHECKED = -1

_GONE = Progress(epoch=NO_GROUP_EPOCH, previous_epoch=NO_GROUP_EPOCH)


class ConsumerState(Enum):
    """Named as ConsumerGroupDescribe names them."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


@dataclass(slots=True)
class ConsumerGroup:
    group_id: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    target: dict[str, Partitions] = field(default_factory=dict)
    target_epoch: int = FIRST_EPOCH
    target_at_ms: int = 0
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)
    has_old_metadata: bool = False
    topics_version: int = NEVER_CHECKED
    static_ids: dict[str, str] = field(default_factory=dict)
    """The member of each instance id."""
    owners: dict[bytes, dict[int, str]] = field(default_factory=dict)
    """Who has a partition, until it is given up."""
    may_describe: Callable[[str], bool] | None = None
    """Which topics the member sees that had regular expressions resolved; all of them if nothing says otherwise."""

    def copy(self) -> ConsumerGroup:
        return ConsumerGroup(
            self.group_id,
            self.epoch,
            self.metadata_hash,
            dict(self.members),
            dict(self.target),
            self.target_epoch,
            self.target_at_ms,
            dict(self.regexes),
            self.has_old_metadata,
            self.topics_version,
            dict(self.static_ids),
            {topic_id: dict(owners) for topic_id, owners in self.owners.items()},
            self.may_describe,
        )

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def state(self) -> ConsumerState:
        if not self.members:
            return ConsumerState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerState.ASSIGNING
        if all(member.progress.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return ConsumerState.STABLE
        return ConsumerState.RECONCILING

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_ids.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def owner_of(self, topic_id: bytes, partition: int) -> str | None:
        return self.owners.get(topic_id, {}).get(partition)

    def subscribed_topics(self) -> set[str]:
        """By name or by a regular expression, as far as that was resolved."""
        named = [member.profile.topics for member in self.members.values()]
        return set().union(*named, *(resolved.topics for resolved in self.regexes.values()))

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        resolved = self.regexes.get(member.profile.regex or "")
        return member.profile.topics if resolved is None else member.profile.topics | resolved.topics

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in member.profile.topics for member in self.members.values()) or any(
            topic in resolved.topics for resolved in self.regexes.values()
        )

    def subscribed_regexes(self) -> set[str]:
        return {member.profile.regex for member in self.members.values() if member.profile.regex}

    def assignor_name(self, known: Sequence[str]) -> str:
        """The one that most members ask for; the first of those that are known where nobody asks for any."""
        votes = Counter(member.profile.assignor for member in self.members.values() if member.profile.assignor)
        return max(known, key=lambda name: votes[name])

    def apply(self, fact: ConsumerFact) -> None:
        match fact:
            case GroupEpochSet():
                self.epoch = NO_GROUP_EPOCH if fact.epoch is None else fact.epoch
                self.metadata_hash = fact.metadata_hash
            case ProfileSet():
                self._apply_profile(fact)
            case TargetEpochSet():
                self.target_epoch = NO_GROUP_EPOCH if fact.epoch is None else fact.epoch
                self.target_at_ms = fact.at_ms
            case TargetSet():
                _put(self.target, fact.member_id, fact.partitions)
            case ProgressSet():
                self._apply_progress(fact)
            case RegexSet():
                _put(self.regexes, fact.regex, fact.resolved)
            case OldMetadataSet():
                self.has_old_metadata = fact.is_there
            case TopicsChecked():
                self.topics_version = fact.version
            case ViewerSet():
                self.may_describe = fact.may_describe

    def _apply_profile(self, fact: ProfileSet) -> None:
        member = self.members.get(fact.member_id)
        if fact.profile is not None:
            member = ConsumerMember(fact.member_id) if member is None else member
            self.members[fact.member_id] = replace(member, profile=fact.profile)
            if fact.profile.instance_id is not None:
                self.static_ids[fact.profile.instance_id] = fact.member_id
        elif member is not None:
            self._release(member)
            del self.members[fact.member_id]
            instance_id = member.profile.instance_id
            if instance_id is not None and self.static_ids.get(instance_id) == fact.member_id:
                del self.static_ids[instance_id]

    def _apply_progress(self, fact: ProgressSet) -> None:
        member = self.members.get(fact.member_id)
        if member is None:
            if fact.progress is None:
                return
            member = ConsumerMember(fact.member_id)  # compaction may have put it before the member's profile
        self._release(member)
        member = replace(member, progress=fact.progress or _GONE)
        self.members[fact.member_id] = member
        for topic_id, partition in _partitions(member.progress):
            self.owners.setdefault(topic_id, {})[partition] = member.member_id

    def _release(self, member: ConsumerMember) -> None:
        for topic_id, partition in _partitions(member.progress):
            owners = self.owners.get(topic_id, {})
            if owners.get(partition) == member.member_id:
                del owners[partition]
                if not owners:
                    del self.owners[topic_id]


def _put(kept: dict[str, V], key: str, value: V | None) -> None:
    if value is None:
        kept.pop(key, None)
    else:
        kept[key] = value


def _partitions(progress: Progress) -> Iterator[tuple[bytes, int]]:
    for held in (progress.assigned, progress.revoking):
        for topic_id, partitions in held.items():
            for partition in partitions:
                yield topic_id, partition
