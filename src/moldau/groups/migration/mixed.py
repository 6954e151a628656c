"""Classic members of a consumer group: JoinGroup, SyncGroup and Heartbeat where the broker assigns.

They know nothing of it. A member's epoch is its generation; REBALANCE_IN_PROGRESS makes it join again, which is how it
gives up what others wait for and how it comes to its target; SyncGroup gives it what it has by then. It never waits for
the other members, and leads nobody.
"""

from __future__ import annotations

from moldau.core.decision import Decision
from moldau.core.errors import ApiError, ErrorCode, ProtocolViolation
from moldau.groups.classic.consumer_protocol import Subscription, read_subscription
from moldau.groups.classic.group import CONSUMER_PROTOCOL_TYPE
from moldau.groups.classic.joining import JoinReply, check, refused
from moldau.groups.classic.members import Joining
from moldau.groups.classic.membership import Syncing, SyncReply
from moldau.groups.consumer.facts import ProfileSet
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.heartbeating import known_member, static_member
from moldau.groups.consumer.members import (
    STATIC_LEAVE_EPOCH,
    ClassicPart,
    ConsumerMember,
    MemberState,
    Partitions,
    Profile,
)
from moldau.groups.consumer.topics import Topics
from moldau.groups.consumer.turn import ConsumerTurn, consumer_join_key, consumer_sync_key
from moldau.groups.limits import GroupLimits
from moldau.groups.migration.conversion import DISABLED, assignment_of, downgrade, may_downgrade
from moldau.wire.messages.join_group import JoinGroupResponse
from moldau.wire.messages.sync_group import SyncGroupResponse


def decide_join(turn: ConsumerTurn, joining: Joining, limits: GroupLimits) -> Decision[JoinReply]:
    """A static member that spoke the other protocol, and was the last to do so, makes the group a classic one."""
    refusal = check(joining, limits)
    if refusal is not None:
        return Decision.reply_only(refused(refusal, joining.member_id))
    before = turn.group
    known = None if joining.instance_id is None else before.static_member(joining.instance_id)
    member_id = joining.member_id or joining.new_member_id
    try:
        subscription = _enter(turn, joining, member_id)
    except ApiError as wrong:
        told_id = member_id if wrong.code is ErrorCode.MEMBER_ID_REQUIRED else ""
        return Decision.reply_only(refused(wrong.code, told_id))
    is_last = known is not None and not known.is_classic and may_downgrade(turn.group, turn.config, limits)
    is_stale = turn.group.target_epoch < turn.group.epoch
    if not is_last:
        turn.assign()
    if not (is_last and is_stale):
        turn.reconcile(member_id, _owned(subscription, turn.topics), is_resubscribed=True)
    if is_last:
        decision = downgrade(
            turn,
            _joined(turn, joining, member_id),
            ended=turn.group,
            generation=before.epoch,
            limits=limits,
            rebalances=is_stale,
        )
        return decision.after(*turn.decide(None).records)
    _await_sync(turn, member_id)
    return turn.decide(_joined(turn, joining, member_id))


def _enter(turn: ConsumerTurn, joining: Joining, member_id: str) -> Subscription:
    """The member's profile is what it says now, and the group's epoch has risen if that is something new."""
    group = turn.group
    _check_join(turn, joining, member_id)
    if joining.must_know_id and not joining.member_id and joining.instance_id is None:
        raise ApiError(ErrorCode.MEMBER_ID_REQUIRED)
    subscription = _subscription(joining)
    member = _member_of(turn, joining, member_id)
    profile = _updated(member.profile, joining, subscription)
    is_other = (profile.topics, profile.regex) != (member.profile.topics, member.profile.regex)
    if profile != member.profile or member_id not in turn.group.members:
        turn.record(ProfileSet(group.group_id, member_id, profile))
    turn.drop_unused_regexes()
    turn.check_topics(is_due=is_other)
    return subscription


def _joined(turn: ConsumerTurn, joining: Joining, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=turn.group.members[member_id].epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=joining.protocols[0].name,
        member_id=member_id,
    )


def _await_sync(turn: ConsumerTurn, member_id: str) -> None:
    """A member that joined has its rebalance time to fetch its assignment."""
    group_id = turn.group.group_id
    turn.cancel_timer(consumer_join_key(group_id, member_id))
    turn.await_heartbeat(member_id)
    turn.set_timer(consumer_sync_key(group_id, member_id), turn.group.members[member_id].profile.rebalance_timeout_ms)


def _check_join(turn: ConsumerTurn, joining: Joining, member_id: str) -> None:
    group, config = turn.group, turn.config
    if config.migration_policy == DISABLED:
        raise ApiError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {group.group_id} with the classic protocol because the group migration "
            "is disabled.",
        )
    if len(group.members) >= config.max_size and member_id not in group.members:
        raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED)
    if joining.protocol_type != CONSUMER_PROTOCOL_TYPE or not _is_understood(group, joining):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _is_understood(group: ConsumerGroup, joining: Joining) -> bool:
    """The classic members could be alone some day, and must then agree on a protocol."""
    parts = [member.profile.classic for member in group.members.values() if member.profile.classic is not None]
    shared = {each.name for each in joining.protocols}
    for part in parts:
        shared &= {each.name for each in part.protocols}
    return bool(shared)


def _subscription(joining: Joining) -> Subscription:
    try:
        return read_subscription(joining.protocols[0].metadata)
    except ProtocolViolation:
        message = "Malformed embedded consumer protocol in subscription deserialization."
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, message) from None


def _member_of(turn: ConsumerTurn, joining: Joining, member_id: str) -> ConsumerMember:
    """The member that speaks, as it was before it did. Any id will do for one that is not static."""
    group, instance_id = turn.group, joining.instance_id
    known = group.members.get(member_id) or ConsumerMember(member_id)
    if instance_id is None:
        return known
    if joining.member_id:
        return static_member(group, instance_id, member_id)
    old = group.static_member(instance_id)
    return known if old is None else turn.replace(old, member_id)


def _updated(profile: Profile, joining: Joining, subscription: Subscription) -> Profile:
    return Profile(
        client_id=joining.client_id,
        client_host=joining.client_host,
        instance_id=profile.instance_id if joining.instance_id is None else joining.instance_id,
        rack_id=profile.rack_id if subscription.rack_id is None else subscription.rack_id,
        topics=frozenset(subscription.topics),
        regex="",
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        assignor=profile.assignor,
        classic=ClassicPart(joining.session_timeout_ms, joining.protocols),
    )


def _owned(subscription: Subscription, topics: Topics) -> Partitions:
    return {
        topic.id: frozenset(each.partitions)
        for each in subscription.owned_partitions
        if (topic := topics.named(each.topic)) is not None
    }


def decide_sync(turn: ConsumerTurn, syncing: Syncing) -> Decision[SyncReply]:
    """The answer is what the member has by now."""
    try:
        return turn.decide(_sync(turn, syncing))
    except ApiError as wrong:
        return Decision.reply_only(SyncGroupResponse(error_code=wrong.code))


def _sync(turn: ConsumerTurn, syncing: Syncing) -> SyncGroupResponse:
    group = turn.group
    member, part = _classic_member(group, syncing.member_id, syncing.instance_id)
    protocol = part.protocols[0]
    if syncing.generation != member.epoch:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    given = ((syncing.protocol_type, CONSUMER_PROTOCOL_TYPE), (syncing.protocol_name, protocol.name))
    if any(said is not None and said != known for said, known in given):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.target_epoch > member.epoch and member.progress.state is not MemberState.UNREVOKED:
        _await_join(turn, member)
        return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    turn.cancel_timer(consumer_sync_key(group.group_id, member.member_id))
    turn.await_heartbeat(member.member_id)
    return SyncGroupResponse(
        protocol_type=syncing.protocol_type,
        protocol_name=syncing.protocol_name,
        assignment=assignment_of(member.progress.assigned, protocol.metadata, turn.topics),
    )


def decide_heartbeat(
    turn: ConsumerTurn, member_id: str, generation: int, *, instance_id: str | None
) -> Decision[ErrorCode]:
    """The answer is whether the member must join again."""
    try:
        return turn.decide(_heartbeat(turn, member_id, generation, instance_id))
    except ApiError as wrong:
        return Decision.reply_only(wrong.code)


def _heartbeat(turn: ConsumerTurn, member_id: str, generation: int, instance_id: str | None) -> ErrorCode:
    group = turn.group
    member, _ = _classic_member(group, member_id, instance_id)
    if generation != member.epoch:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    turn.await_heartbeat(member_id)
    if not any(_heartbeats_itself(each) for each in group.members.values()):
        # Nobody's heartbeat but this would share what another member left, or what was added to a topic.
        turn.check_topics(is_due=False)
        turn.assign()
    if not _must_join(turn.group, member):
        return ErrorCode.NONE
    _await_join(turn, member)
    return ErrorCode.REBALANCE_IN_PROGRESS


def _heartbeats_itself(member: ConsumerMember) -> bool:
    """A member of the consumer protocol that is there: a static one may have left for a while."""
    return not member.is_classic and member.epoch != STATIC_LEAVE_EPOCH


def _must_join(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """There is another target, or something to give up, or what it waits for is free."""
    state = member.progress.state
    return (
        member.epoch < group.target_epoch
        or state is MemberState.UNREVOKED
        or (state is MemberState.UNRELEASED and not _is_waiting(group, member))
    )


def _is_waiting(group: ConsumerGroup, member: ConsumerMember) -> bool:
    target, held = group.target.get(member.member_id, {}), member.progress.assigned
    return any(
        partition not in held.get(topic_id, {}) and group.owner_of(topic_id, partition) is not None
        for topic_id, partitions in target.items()
        for partition in partitions
    )


def _await_join(turn: ConsumerTurn, member: ConsumerMember) -> None:
    """From the first time that it hears of it a member has its rebalance time to join again."""
    key = consumer_join_key(turn.group.group_id, member.member_id)
    turn.begin_timer(key, member.profile.rebalance_timeout_ms)


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[ConsumerMember, ClassicPart]:
    member = known_member(group, member_id) if instance_id is None else static_member(group, instance_id, member_id)
    part = member.profile.classic
    if part is None:
        message = f"Member {member_id} does not use the classic protocol."
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, message)
    return member, part
