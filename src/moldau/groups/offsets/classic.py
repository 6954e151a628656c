"""Committed offsets: who may commit, what is kept, and for how long."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from moldau.core.decision import Decision, Timer
from moldau.core.errors import ErrorCode
from moldau.core.ids import ZERO_UUID
from moldau.groups.classic.group import Group, State
from moldau.groups.classic.rebalance import session_key
from moldau.groups.limits import GroupLimits
from moldau.groups.offsets.pending import PendingOffsets
from moldau.groups.records import (
    NO_EXPIRY,
    CommittedOffset,
    Fact,
    GroupDeleted,
    OffsetCommitted,
    OffsetDeleted,
    OffsetPending,
)

DEFAULT_RETENTION = -1
NEVER_MS = 2**63 - 1  # the latest moment that a record has room for

# What one group committed, by topic and partition.
GroupOffsets: TypeAlias = Mapping[str, Mapping[int, CommittedOffset]]


class CommittedPartition(NamedTuple):
    """One line of an OffsetCommit request."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = ""
    topic_id: bytes = ZERO_UUID


class Committing(msgspec.Struct, frozen=True, kw_only=True):
    """An OffsetCommit request in the coordinator's words."""

    group_id: str
    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None
    retention_ms: int = DEFAULT_RETENTION
    partitions: Sequence[CommittedPartition]
    missing_group: ErrorCode = ErrorCode.ILLEGAL_GENERATION
    """What a member of a group that isn't there is told; versions differ."""
    knows_epochs: bool = True
    """The request is of a version that members of consumer groups may use."""

    def expire_ms(self, now_ms: int) -> int:
        """Only the oldest versions say how long an offset is kept."""
        return NO_EXPIRY if self.retention_ms == DEFAULT_RETENTION else min(now_ms + self.retention_ms, NEVER_MS)


def decide_commit(
    group: Group | None, committing: Committing, *, limits: GroupLimits, now_ms: int
) -> Decision[list[ErrorCode]]:
    """One answer for each partition."""
    error = _check_commit(group, committing)
    if error is not ErrorCode.NONE:
        return Decision.reply_only([error] * len(committing.partitions))
    kept, replies = keep(committing, limits=limits, now_ms=now_ms, expire_ms=committing.expire_ms(now_ms))
    facts = [OffsetCommitted(committing.group_id, *each) for each in kept]
    return Decision(facts, replies, _sign_of_life(group, committing.member_id, now_ms))


def decide_commit_in_transaction(
    group: Group | None, committing: Committing, *, producer_id: int, limits: GroupLimits, now_ms: int
) -> Decision[list[ErrorCode]]:
    """The offsets count when the producer's transaction is committed."""
    error = _check_transactional(group, committing)
    if error is not ErrorCode.NONE:
        return Decision.reply_only([error] * len(committing.partitions))
    kept, replies = keep(committing, limits=limits, now_ms=now_ms, expire_ms=NO_EXPIRY)
    return Decision([OffsetPending(producer_id, committing.group_id, *each) for each in kept], replies)


def keep(
    committing: Committing, *, limits: GroupLimits, now_ms: int, expire_ms: int
) -> tuple[list[tuple[str, int, CommittedOffset]], list[ErrorCode]]:
    kept = []
    replies = []
    for topic, partition, offset, leader_epoch, metadata, topic_id in committing.partitions:
        if metadata and len(metadata) > limits.offset_metadata_chars_max:
            replies.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            continue
        kept.append(
            (topic, partition, CommittedOffset(offset, leader_epoch, metadata or "", now_ms, expire_ms, topic_id))
        )
        replies.append(ErrorCode.NONE)
    return kept, replies


def _check_commit(group: Group | None, committing: Committing) -> ErrorCode:
    if group is not None and not group.is_empty and is_nobody(committing):
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = _check_transactional(group, committing)
    if error is ErrorCode.NONE and group is not None and group.state is State.COMPLETING:
        error = ErrorCode.REBALANCE_IN_PROGRESS
    return error


def _check_transactional(group: Group | None, committing: Committing) -> ErrorCode:
    """A producer that names no member may commit for any group: its own id fences it."""
    generation = committing.generation
    if group is None:
        return ErrorCode.NONE if generation < 0 else committing.missing_group
    if (generation < 0 and group.is_empty) or is_nobody(committing):
        return ErrorCode.NONE
    error = group.check_member(committing.member_id, committing.instance_id)
    if error is ErrorCode.NONE and generation != group.generation:
        error = ErrorCode.ILLEGAL_GENERATION
    return error


def is_nobody(committing: Committing) -> bool:
    return committing.generation < 0 and not committing.member_id and committing.instance_id is None


def _sign_of_life(group: Group | None, member_id: str, now_ms: int) -> tuple[Timer, ...]:
    member = None if group is None else group.members.get(member_id)
    if group is None or member is None:
        return ()
    return (Timer(session_key(group.group_id, member_id), now_ms + member.session_timeout_ms),)


def decide_delete_offsets(
    group: Group | None, known: Collection[tuple[str, int]], partitions: Sequence[tuple[str, int]]
) -> Decision[ErrorCode | list[ErrorCode]]:
    """One answer for each partition, or one for the whole group."""
    if group is None:
        return Decision.reply_only(ErrorCode.GROUP_ID_NOT_FOUND)
    if not group.is_empty and not group.is_consumer:
        return Decision.reply_only(ErrorCode.NON_EMPTY_GROUP)
    facts: list[OffsetDeleted] = []
    replies: list[ErrorCode] = []
    for topic, partition in partitions:
        if group.is_subscribed_to(topic):
            replies.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
            continue
        replies.append(ErrorCode.NONE)
        if (topic, partition) in known:
            facts.append(OffsetDeleted(group.group_id, topic, partition))
    return Decision(facts, replies)


def decide_delete_group(group: Group | None, known: Collection[tuple[str, int]]) -> Decision[ErrorCode]:
    if group is None:
        return Decision.reply_only(ErrorCode.GROUP_ID_NOT_FOUND)
    if not group.is_empty:
        return Decision.reply_only(ErrorCode.NON_EMPTY_GROUP)
    facts: list[Fact] = [OffsetDeleted(group.group_id, topic, partition) for topic, partition in known]
    return Decision([*facts, GroupDeleted(group.group_id)], ErrorCode.NONE, is_whole=False)


def expired(
    group: Group, offsets: GroupOffsets, pending: PendingOffsets, *, limits: GroupLimits, now_ms: int
) -> list[Fact]:
    """What of a group has been kept long enough; the group itself too, when nothing of it is left.

    Nothing of a subscribed topic expires. An empty group's time runs since it became empty, that of a simple group and
    of topics that a group no longer reads since the commit.
    """
    since_commit = group.protocol_type is None or group.state is State.STABLE
    facts: list[Fact] = []
    is_kept = bool(pending.of_group(group.group_id))
    for topic, committed in offsets.items():
        for partition, offset in committed.items():
            start_ms = offset.commit_ms if since_commit or group.state_since_ms < 0 else group.state_since_ms
            is_due = is_over(offset, start_ms, limits.offsets_retention_ms, now_ms)
            if is_due and _may_expire(group, topic) and not pending.has(group.group_id, topic, partition):
                facts.append(OffsetDeleted(group.group_id, topic, partition))
            else:
                is_kept = True
    if group.is_empty and not is_kept and not group.pending:
        facts.append(GroupDeleted(group.group_id))
    return facts


def _may_expire(group: Group, topic: str) -> bool:
    if group.is_empty or group.protocol_type is None:
        return True
    readable = group.is_consumer and group.subscribed_topics is not None
    return readable and group.state is State.STABLE and not group.is_subscribed_to(topic)


def is_over(offset: CommittedOffset, start_ms: int, retention_ms: int, now_ms: int) -> bool:
    return now_ms >= (offset.expire_ms if offset.expire_ms != NO_EXPIRY else start_ms + retention_ms)
