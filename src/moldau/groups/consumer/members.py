"""A member of a consumer group: what it said about itself, and how far it has come towards its assignment."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TypeAlias

import msgspec

from moldau.groups.classic.members import Protocol

Partitions: TypeAlias = Mapping[bytes, frozenset[int]]
"""By topic id."""
EpochPartitions: TypeAlias = Mapping[bytes, Mapping[int, int]]
"""By topic id, each partition with the epoch in which the member got it."""

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
NO_TIMEOUT = -1


class MemberState(IntEnum):
    """Numbered as in the log."""

    STABLE = 0
    """It has everything of the target that it may have by now."""
    UNREVOKED = 1
    """It must give partitions up before it may have others."""
    UNRELEASED = 2
    """It waits for partitions that other members have not given up."""
    UNKNOWN = 127
    """Of a release that knows more states than this one."""


class ClassicPart(msgspec.Struct, frozen=True):
    """What a member that speaks the classic protocol brings along; the place where migration keeps its knowledge."""

    session_timeout_ms: int
    protocols: tuple[Protocol, ...]


class Profile(msgspec.Struct, frozen=True):
    """What a client says about itself. It is logged when it changes."""

    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    topics: frozenset[str] = frozenset()
    regex: str | None = ""
    """Kafka writes an empty string for none, and reads null as none too."""
    rebalance_timeout_ms: int = NO_TIMEOUT
    assignor: str | None = None
    classic: ClassicPart | None = None


class Progress(msgspec.Struct, frozen=True):
    """How far a member has come. It is logged when it changes."""

    epoch: int = JOIN_EPOCH
    previous_epoch: int = -1
    """A member that missed the last answer still knows only this one."""
    state: MemberState = MemberState.STABLE
    assigned: EpochPartitions = msgspec.field(default_factory=dict)
    revoking: EpochPartitions = msgspec.field(default_factory=dict)

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def epoch_of(self, topic_id: bytes, partition: int) -> int | None:
        """Since which epoch the member has a partition, also one that it is about to give up."""
        assigned = self.assigned.get(topic_id, {}).get(partition)
        return self.revoking.get(topic_id, {}).get(partition) if assigned is None else assigned


class ConsumerMember(msgspec.Struct, frozen=True):
    member_id: str
    profile: Profile = Profile()
    progress: Progress = Progress()

    @property
    def epoch(self) -> int:
        return self.progress.epoch

    @property
    def is_classic(self) -> bool:
        return self.profile.classic is not None
