"""The groups whose ids fall into one partition of `__consumer_offsets`: their state, and every decision about it.

Decisions read the state and change nothing; `apply` changes it and looks at no clock. Recovery is `apply` of what the
log holds.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any

from moldau.coordinator.journal import Stored
from moldau.core.decision import Decision, Timer
from moldau.core.errors import ErrorCode
from moldau.groups import classic, joining, offsets
from moldau.groups.classic import Leaving, Syncing, SyncReply
from moldau.groups.group import Group
from moldau.groups.joining import JoinReply
from moldau.groups.limits import GroupLimits
from moldau.groups.members import Joining
from moldau.groups.offsets import Committing, GroupOffsets
from moldau.groups.pending import PendingOffsets
from moldau.groups.rebalance import JOIN, SESSION, SYNC, session_key
from moldau.groups.records import (
    CommittedOffset,
    Fact,
    GroupChanged,
    GroupCreated,
    GroupDeleted,
    OffsetCommitted,
    OffsetDeleted,
    OffsetPending,
    TransactionEnded,
    decode_fact,
    decode_pending,
    encode_fact,
)
from moldau.wire.batch import NO_PRODUCER_ID

EXPIRY = ("expiry", "", "")


class GroupShard:
    """A state machine that a runtime drives."""

    __slots__ = ("groups", "limits", "offsets", "pending")

    def __init__(self, limits: GroupLimits) -> None:
        self.limits = limits
        self.groups: dict[str, Group] = {}
        self.offsets: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self.pending = PendingOffsets()

    def encode(self, fact: Fact) -> tuple[bytes, bytes | None] | None:
        return encode_fact(fact)

    def decode(self, stored: Stored) -> Fact | None:
        """What a record of the log states; ProtocolViolation if it is damaged."""
        if stored.marker is not None:
            return TransactionEnded(stored.producer_id, stored.marker.is_commit, stored.marker.coordinator_epoch)
        if stored.producer_id != NO_PRODUCER_ID:
            return decode_pending(stored.key, stored.value, stored.producer_id)
        return decode_fact(stored.key, stored.value)

    def apply(self, fact: Fact) -> None:
        match fact:
            case OffsetCommitted():
                self._commit(fact)
                if self.pending:
                    self.pending.overtaken(fact)
            case GroupChanged():
                self.groups[fact.group.group_id] = fact.group
            case GroupCreated():
                self.groups.setdefault(fact.group_id, Group(fact.group_id, state_since_ms=fact.at_ms))
            case OffsetDeleted():
                self._forget(fact)
            case OffsetPending():
                self.groups.setdefault(fact.group_id, Group(fact.group_id))
                self.pending.add(fact)
            case TransactionEnded():
                for counted in self.pending.end(fact.producer_id, is_commit=fact.is_commit):
                    self._commit(counted)
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
        self.pending.forget((fact.group_id, fact.topic, fact.partition))
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

    def decide_commit_in_transaction(
        self, request: Committing, producer_id: int, now_ms: int
    ) -> Decision[list[ErrorCode]]:
        group = self.groups.get(request.group_id)
        return offsets.decide_commit_in_transaction(
            group, request, producer_id=producer_id, limits=self.limits, now_ms=now_ms
        )

    def decide_end_transaction(
        self, producer_id: int, *, is_commit: bool, coordinator_epoch: int
    ) -> Decision[ErrorCode]:
        """A marker is always written: the log's own knowledge of the transaction must end too."""
        return Decision((TransactionEnded(producer_id, is_commit, coordinator_epoch),), ErrorCode.NONE)

    def decide_delete_offsets(
        self, group_id: str, partitions: Sequence[tuple[str, int]]
    ) -> Decision[ErrorCode | list[ErrorCode]]:
        known = self._places(group_id)
        return offsets.decide_delete_offsets(self.groups.get(group_id), known, partitions)

    def decide_delete_group(self, group_id: str) -> Decision[ErrorCode]:
        return offsets.decide_delete_group(self.groups.get(group_id), self._places(group_id))

    def _places(self, group_id: str) -> dict[tuple[str, int], None]:
        """Topics and partitions that the group has an offset for, or will have when a transaction is committed."""
        committed = [(topic, index) for topic, kept in self.offsets_of(group_id).items() for index in kept]
        return dict.fromkeys([*committed, *self.pending.of_group(group_id)])

    def decide_expiry(self, now_ms: int) -> Decision[None]:
        facts: list[Any] = []
        for group_id, group in self.groups.items():
            facts += offsets.expired(group, self.offsets_of(group_id), self.pending, limits=self.limits, now_ms=now_ms)
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
