"""Facts about consumer groups. Each is one record of the log; a value of None is its tombstone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from moldau.groups.consumer.members import Partitions, Profile, Progress


class ResolvedRegex(msgspec.Struct, frozen=True):
    topics: frozenset[str]
    version: int
    """Which topics there were to choose from."""
    at_ms: int


class GroupEpochSet(msgspec.Struct, frozen=True):
    """The epoch rises with every reason for another assignment; None is the end of the group."""

    group_id: str
    epoch: int | None
    metadata_hash: int = 0
    """Of the subscribed topics as they were then."""


class ProfileSet(msgspec.Struct, frozen=True):
    group_id: str
    member_id: str
    profile: Profile | None


class TargetEpochSet(msgspec.Struct, frozen=True):
    """The assignment for this epoch of the group is complete."""

    group_id: str
    epoch: int | None
    at_ms: int = 0


class TargetSet(msgspec.Struct, frozen=True):
    group_id: str
    member_id: str
    partitions: Partitions | None


class ProgressSet(msgspec.Struct, frozen=True):
    group_id: str
    member_id: str
    progress: Progress | None


class RegexSet(msgspec.Struct, frozen=True):
    group_id: str
    regex: str
    resolved: ResolvedRegex | None


class OldMetadataSet(msgspec.Struct, frozen=True):
    """The list of subscribed topics that older releases wrote instead of a hash. It is only ever removed."""

    group_id: str
    is_there: bool


class TopicsChecked(msgspec.Struct, frozen=True):
    """The hash was compared with the topics of this version. It is not logged."""

    group_id: str
    version: int


class ViewerSet(msgspec.Struct, frozen=True):
    """Whose right to see topics counts when regular expressions are resolved next. It is not logged."""

    group_id: str
    may_describe: Callable[[str], bool] | None


ConsumerFact: TypeAlias = (
    GroupEpochSet
    | ProfileSet
    | TargetEpochSet
    | TargetSet
    | ProgressSet
    | RegexSet
    | OldMetadataSet
    | TopicsChecked
    | ViewerSet
)


def is_removal(fact: ConsumerFact) -> bool:
    match fact:
        case GroupEpochSet(epoch=value) | TargetEpochSet(epoch=value):
            return value is None
        case ProfileSet():
            return fact.profile is None
        case TargetSet():
            return fact.partitions is None
        case ProgressSet():
            return fact.progress is None
        case RegexSet():
            return fact.resolved is None
        case OldMetadataSet():
            return not fact.is_there
    return False
