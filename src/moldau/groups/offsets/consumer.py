"""Committed offsets of consumer groups: who may commit and fetch, and for how long they are kept."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.groups.consumer.facts import (
    ConsumerFact,
    GroupEpochSet,
    OldMetadataSet,
    ProfileSet,
    ProgressSet,
    RegexSet,
    TargetEpochSet,
    TargetSet,
)
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.members import ConsumerMember
from moldau.groups.limits import GroupLimits
from moldau.groups.offsets.classic import (
    CommittedPartition,
    Committing,
    GroupOffsets,
    is_nobody,
    is_over,
    keep,
)
from moldau.groups.offsets.pending import PendingOffsets
from moldau.groups.records import NO_EXPIRY, Fact, OffsetCommitted, OffsetDeleted, OffsetPending


def decide_commit(
    group: ConsumerGroup, committing: Committing, *, limits: GroupLimits, now_ms: int
) -> Decision[list[ErrorCode]]:
    """One answer for each partition, though one that is refused refuses all, as in Kafka."""
    error = _check_commit(group, committing)
    if error is not ErrorCode.NONE:
        return Decision.reply_only([error] * len(committing.partitions))
    kept, replies = keep(committing, limits=limits, now_ms=now_ms, expire_ms=committing.expire_ms(now_ms))
    return Decision([OffsetCommitted(committing.group_id, *each) for each in kept], replies)


def decide_commit_in_transaction(
    group: ConsumerGroup, committing: Committing, *, producer_id: int, limits: GroupLimits, now_ms: int
) -> Decision[list[ErrorCode]]:
    """A producer knows nothing of member epochs, so it hears of a wrong one as of a wrong generation."""
    error = ErrorCode.NONE if is_nobody(committing) else _check_member(group, committing)
    if error is not ErrorCode.NONE:
        told = ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH else error
        return Decision.reply_only([told] * len(committing.partitions))
    kept, replies = keep(committing, limits=limits, now_ms=now_ms, expire_ms=NO_EXPIRY)
    return Decision([OffsetPending(producer_id, committing.group_id, *each) for each in kept], replies)


def _check_commit(group: ConsumerGroup, committing: Committing) -> ErrorCode:
    member = group.members.get(committing.member_id)
    if member is not None and not member.is_classic and not committing.knows_epochs:
        return ErrorCode.UNSUPPORTED_VERSION
    return _check_member(group, committing)


def _check_member(group: ConsumerGroup, committing: Committing) -> ErrorCode:
    """An epoch that is behind will do for partitions that the member has had since then."""
    epoch = committing.generation
    if epoch < 0 and group.is_empty:
        return ErrorCode.NONE
    member = group.members.get(committing.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if epoch == member.epoch:
        return ErrorCode.NONE
    if epoch < member.epoch and all(_has_had(member, each, epoch) for each in committing.partitions):
        return ErrorCode.NONE
    return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH


def _has_had(member: ConsumerMember, partition: CommittedPartition, epoch: int) -> bool:
    since = member.progress.epoch_of(partition.topic_id, partition.partition)
    return since is not None and epoch >= since


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode:
    """Anybody may look who does not claim to be a member."""
    if member_id is None and epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if epoch == member.epoch:
        return ErrorCode.NONE
    return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH


def decide_delete_offsets(
    group: ConsumerGroup, known: Collection[tuple[str, int]], partitions: Sequence[tuple[str, int]]
) -> Decision[ErrorCode | list[ErrorCode]]:
    """One answer for each partition."""
    facts = []
    replies = []
    for topic, partition in partitions:
        if group.is_subscribed_to(topic):
            replies.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
            continue
        replies.append(ErrorCode.NONE)
        if (topic, partition) in known:
            facts.append(OffsetDeleted(group.group_id, topic, partition))
    return Decision(facts, replies)


def decide_delete_group(group: ConsumerGroup, known: Collection[tuple[str, int]]) -> Decision[ErrorCode]:
    if not group.is_empty:
        return Decision.reply_only(ErrorCode.NON_EMPTY_GROUP)
    offsets = [OffsetDeleted(group.group_id, topic, partition) for topic, partition in known]
    return Decision([*offsets, *end_of(group)], ErrorCode.NONE, is_whole=False)


def end_of(group: ConsumerGroup) -> list[ConsumerFact]:
    """Everything about a group is removed, in the order in which Kafka reads it back without complaint."""
    group_id = group.group_id
    return [
        *(ProgressSet(group_id, member_id, None) for member_id in group.members),
        *(TargetSet(group_id, member_id, None) for member_id in group.members),
        TargetEpochSet(group_id, None),
        *(ProfileSet(group_id, member_id, None) for member_id in group.members),
        *(RegexSet(group_id, regex, None) for regex in group.regexes),
        OldMetadataSet(group_id, is_there=False),
        GroupEpochSet(group_id, None),
    ]


def expired(
    group: ConsumerGroup, offsets: GroupOffsets, pending: PendingOffsets, *, limits: GroupLimits, now_ms: int
) -> list[Fact]:
    """What has been kept long enough since it was committed; the group itself too, when nothing of it is left."""
    facts: list[Fact] = []
    is_kept = bool(pending.of_group(group.group_id))
    for topic, committed in offsets.items():
        is_subscribed = group.is_subscribed_to(topic)
        for partition, offset in committed.items():
            if (
                is_subscribed
                or pending.has(group.group_id, topic, partition)
                or not is_over(offset, offset.commit_ms, limits.offsets_retention_ms, now_ms)
            ):
                is_kept = True
            else:
                facts.append(OffsetDeleted(group.group_id, topic, partition))
    return facts if is_kept or not group.is_empty else [*facts, *end_of(group)]
