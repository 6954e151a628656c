"""The groups whose ids fall into one partition of `__consumer_offsets`: their state, and every decision about it.

Decisions read the state and change nothing; `apply` changes it and looks at no clock. Recovery is `apply` of what the
log holds.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any

from moldau.core.decision import Decision, Timer
from moldau.core.errors import ErrorCode
from moldau.groups import classic, joining, offsets
from moldau.groups.classic import Leaving, Syncing, SyncReply
from moldau.groups.group import Group
from moldau.groups.joining import JoinReply
from moldau.groups.limits import GroupLimits
from moldau.groups.members import Joining
from moldau.groups.offsets import Committing, GroupOffsets
from moldau.groups.rebalance import JOIN, SESSION, SYNC, session_key
from moldau.groups.records import (
    CommittedOffset,
    Fact,
    GroupChanged,
    GroupCreated,
    GroupDeleted,
    OffsetCommitted,
    OffsetDeleted,
    decode_fact,
    encode_fact,
)

EXPIRY = ("expiry", "", "")


class GroupShard:
    """A state machine that a runtime drives."""

    __slots__ = ("groups", "limits", "offsets")

    def __init__(self, limits: GroupLimits) -> None:
        self.limits = limits
        self.groups: dict[str, Group] = {}
        self.offsets: dict[str, dict[str, dict[int, CommittedOffset]]] = {}

    def encode(self, fact: Fact) -> tuple[bytes, bytes | None] | None:
        return encode_fact(fact)

    def decode(self, key: memoryview, value: memoryview | None) -> Fact | None:
        return decode_fact(key, value)

    def apply(self, fact: Fact) -> None:
        match fact:
            case OffsetCommitted():
                self._commit(fact)
            case GroupChanged():
                self.groups[fact.group.group_id] = fact.group
            case GroupCreated():
                self.groups.setdefault(fact.group_id, Group(fact.group_id, state_since_ms=fact.at_ms))
            case OffsetDeleted():
                self._forget(fact)
            case GroupDeleted():
                self.groups.pop(fact.group_id, None)

    def _commit(self, fact: OffsetCommitted) -> None:
        group_id = fact.group_id
        if group_id not in self.groups:
            self.groups[group_id] = Group(group_id)
        self.offsets.setdefault(group_id, {}).setdefault(fact.topic, {})[fact.partition] = fact.committed

    def _forget(self, fact: OffsetDeleted) -> None:
        topics = self.offsets.get(fact.group_id, {})
        partitions = topics.get(fact.topic, {})
        partitions.pop(fact.partition, None)
        if not partitions:
            topics.pop(fact.topic, None)
        if not topics:
            self.offsets.pop(fact.group_id, None)

    def offsets_of(self, group_id: str) -> GroupOffsets:
        return self.offsets.get(group_id, {})

    def decide_started(self, now_ms: int) -> Decision[None]:
        """After recovery every member has its full session time again; the old coordinator's clock is unknown."""
        timers = [Timer(EXPIRY, now_ms + self.limits.expiry_interval_ms)]
        for group in self.groups.values():
            timers += [
                Timer(session_key(group.group_id, member.member_id), now_ms + member.session_timeout_ms)
                for member in group.members.values()
            ]
        return Decision((), None, tuple(timers))

    def decide_timer(self, key: Hashable, now_ms: int) -> Decision[None]:
        assert isinstance(key, tuple)
        kind, group_id, member_id = key
        group, limits = self.groups.get(group_id), self.limits
        if kind == SESSION:
            return classic.decide_session_expired(group, group_id, member_id, limits=limits, now_ms=now_ms)
        if kind == JOIN:
            return classic.decide_join_expired(group, group_id, limits=limits, now_ms=now_ms)
        if kind == SYNC:
            return classic.decide_sync_expired(group, group_id, limits=limits, now_ms=now_ms)
        return self.decide_expiry(now_ms)

    def decide_join(self, request: Joining, now_ms: int) -> Decision[JoinReply]:
        return joining.decide_join(self.groups.get(request.group_id), request, limits=self.limits, now_ms=now_ms)

    def decide_sync(self, request: Syncing, now_ms: int) -> Decision[SyncReply]:
        return classic.decide_sync(self.groups.get(request.group_id), request, limits=self.limits, now_ms=now_ms)

    def decide_heartbeat(
        self, group_id: str, member_id: str, generation: int, *, instance_id: str | None, now_ms: int
    ) -> Decision[ErrorCode]:
        group = self.groups.get(group_id)
        return classic.decide_heartbeat(group, member_id, generation, instance_id=instance_id, now_ms=now_ms)

    def decide_leave(self, group_id: str, leaving: Sequence[Leaving], now_ms: int) -> Decision[list[ErrorCode]]:
        group = self.groups.get(group_id)
        return classic.decide_leave(group, group_id, leaving, limits=self.limits, now_ms=now_ms)

    def decide_commit(self, request: Committing, now_ms: int) -> Decision[list[ErrorCode]]:
        return offsets.decide_commit(self.groups.get(request.group_id), request, limits=self.limits, now_ms=now_ms)

    def decide_delete_offsets(
        self, group_id: str, partitions: Sequence[tuple[str, int]]
    ) -> Decision[ErrorCode | list[ErrorCode]]:
        return offsets.decide_delete_offsets(self.groups.get(group_id), self.offsets_of(group_id), partitions)

    def decide_delete_group(self, group_id: str) -> Decision[ErrorCode]:
        return offsets.decide_delete_group(self.groups.get(group_id), self.offsets_of(group_id))

    def decide_expiry(self, now_ms: int) -> Decision[None]:
        facts: list[Any] = []
        for group_id, group in self.groups.items():
            facts += offsets.expired(group, self.offsets_of(group_id), limits=self.limits, now_ms=now_ms)
        return Decision(facts, None, (Timer(EXPIRY, now_ms + self.limits.expiry_interval_ms),))

    def decide_topics_deleted(self, topics: Collection[str]) -> Decision[None]:
        """Offsets of a topic that is gone would be wrong for another of the same name."""
        facts = [
            OffsetDeleted(group_id, topic, partition)
            for group_id, committed in self.offsets.items()
            for topic in topics
            for partition in committed.get(topic, ())
        ]
        return Decision(facts, None)
