"""A group goes from the classic protocol to the consumer protocol, and back, while its members are there.

    classic group   --a client of the consumer protocol joins--------------------> consumer group, the others in it
    consumer group  --the last member of the consumer protocol goes--------------> classic group, which rebalances
    consumer group  --or comes back, under its instance id, as a classic member--> classic group

`group.consumer.migration.policy` says which of that may happen. Committed offsets belong to the group whatever it is,
so that nothing happens to them. How classic members live in a consumer group is told in `mixed.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from moldau.core.decision import Decision, Released, Timer
from moldau.core.errors import ApiError, ErrorCode, ProtocolViolation
from moldau.groups.classic.consumer_protocol import Assigned, read_assignment, read_subscription, write_assignment
from moldau.groups.classic.group import CONSUMER_PROTOCOL_TYPE, Group, State
from moldau.groups.classic.members import Member
from moldau.groups.classic.rebalance import Turn, join_key, session_key, sync_key
from moldau.groups.classic.subscriptions import subscribed_topics
from moldau.groups.consumer.facts import GroupEpochSet, ProfileSet, ProgressSet, TargetEpochSet, TargetSet
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.members import ClassicPart, ConsumerMember, MemberState, Partitions, Profile, Progress
from moldau.groups.consumer.topics import Topics
from moldau.groups.consumer.turn import ConsumerTurn, consumer_keys
from moldau.groups.limits import ConsumerGroupConfig, GroupLimits
from moldau.groups.offsets.consumer import end_of
from moldau.groups.records import GroupChanged
from moldau.wire.messages.join_group import JoinGroupResponse
from moldau.wire.messages.sync_group import SyncGroupResponse

R = TypeVar("R")

DISABLED = "disabled"
UPGRADING = ("bidirectional", "upgrade")
DOWNGRADING = ("bidirectional", "downgrade")


def upgrade(turn: ConsumerTurn, old: Group) -> None:
    """The members of a classic group go on in the consumer group of this turn. Raises ApiError if they can't."""
    _check_upgrade(old, turn.config)
    members = [_upgraded(old, member, turn.topics) for member in old.members.values()]
    group_id, epoch = old.group_id, old.generation
    topics = frozenset[str]().union(*(member.profile.topics for member in members))
    for member in members:
        turn.record(ProfileSet(group_id, member.member_id, member.profile))
    turn.record(GroupEpochSet(group_id, epoch, turn.topics.hash_of(topics)))
    for member in members:
        turn.record(TargetSet(group_id, member.member_id, _target(member)))
    turn.record(TargetEpochSet(group_id, epoch))
    for member in members:
        turn.record(ProgressSet(group_id, member.member_id, member.progress))
    turn.cancel_timer(join_key(group_id))
    turn.cancel_timer(sync_key(group_id))
    for member_id in (*old.members, *old.pending):
        turn.cancel_timer(session_key(group_id, member_id))
    for member_id in old.members:
        turn.await_heartbeat(member_id)


def _check_upgrade(old: Group, config: ConsumerGroupConfig) -> None:
    if config.migration_policy not in UPGRADING:
        raise _refusal(old, "online upgrade is disabled")
    if old.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise _refusal(old, "the group does not use the consumer embedded protocol")
    if len(old.members) > config.max_size:
        raise _refusal(old, "the group size exceeds the consumer group maximum size")


def _refusal(old: Group, reason: str) -> ApiError:
    message = f"Cannot upgrade classic group {old.group_id} to consumer group because {reason}."
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _upgraded(old: Group, member: Member, topics: Topics) -> ConsumerMember:
    # A group whose first generation is not there yet has agreed on no protocol; any of a member's names its topics.
    protocol = old.protocol_name or member.protocols[0].name
    try:
        subscription = read_subscription(member.metadata(protocol))
        assigned = read_assignment(member.assignment) if member.assignment else Assigned()
    except ProtocolViolation:
        raise _refusal(old, "the embedded consumer protocol is malformed") from None
    if assigned.user_data:
        advice = "Please refer to the documentation or switch to a default assignor before re-attempting the upgrade"
        raise _refusal(old, f"an unsupported custom assignor is in use. {advice}")
    profile = Profile(
        client_id=member.client_id,
        client_host=member.client_host,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        topics=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicPart(member.session_timeout_ms, member.protocols),
    )
    held: dict[bytes, dict[int, int]] = {
        topic.id: dict.fromkeys(each.partitions, old.generation)
        for each in assigned.partitions
        if (topic := topics.named(each.topic)) is not None
    }
    progress = Progress(old.generation, old.generation, MemberState.STABLE, held)
    return ConsumerMember(member.member_id, profile, progress)


def _target(member: ConsumerMember) -> Partitions:
    return {topic_id: frozenset(held) for topic_id, held in member.progress.assigned.items()}


def interrupted(old: Group) -> tuple[Released, ...]:
    """Who waits for the classic group's next generation, or its assignment, waits in vain and must join again."""
    again = ErrorCode.REBALANCE_IN_PROGRESS
    group_id = old.group_id
    released = []
    for member in old.members.values():
        if member.is_joining:
            reply = JoinGroupResponse(error_code=again, protocol_name=None, member_id=member.member_id)
            released.append(Released(join_key(group_id, member.member_id), reply))
        if member.is_syncing:
            released.append(Released(sync_key(group_id, member.member_id), SyncGroupResponse(error_code=again)))
    return tuple(released)


def may_downgrade(left: ConsumerGroup, config: ConsumerGroupConfig, limits: GroupLimits) -> bool:
    """Whether a group with these members is to be classic."""
    members = left.members.values()
    return (
        bool(members)
        and all(member.is_classic for member in members)
        and config.migration_policy in DOWNGRADING
        and len(members) <= limits.members_max
    )


def downgrade(
    turn: ConsumerTurn, reply: R, *, ended: ConsumerGroup, generation: int, limits: GroupLimits, rebalances: bool = True
) -> Decision[R]:
    """The members that the turn leaves go on in a classic group; `ended` is what the log knows of the other one.

    They go on with what they hold, not with what they were to get: a partition that one of them has not given up yet
    would have two owners as soon as the group is upgraded again. Kafka writes what they were to get.
    """
    group = _downgraded(turn.group, generation=generation, topics=turn.topics, now_ms=turn.now_ms)
    classic = Turn(group, group.group_id, limits=limits, now_ms=turn.now_ms)
    for member in group.members.values():
        classic.await_heartbeat(member)
    logged = group
    if rebalances or not _is_settled(turn.group):
        classic.prepare()
        # Whoever loads it knows nothing of this rebalance. In a generation that no member is of, all must join again.
        logged = replace(group, generation=generation + 1)
    decision = classic.decide(reply)
    gone = (*ended.members, *turn.group.members)
    ended_timers = [Timer(key, None) for member_id in gone for key in consumer_keys(group.group_id, member_id)]
    return Decision(
        (*end_of(ended), GroupChanged(logged, is_logged=True), *decision.records),
        reply,
        (*ended_timers, *decision.timers),
        decision.released,
    )


def _downgraded(left: ConsumerGroup, *, generation: int, topics: Topics, now_ms: int) -> Group:
    members = {member.member_id: _classic_member(member) for member in left.members.values()}
    group = Group(
        left.group_id,
        state=State.STABLE,
        generation=generation,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        leader=next(iter(members)),
        state_since_ms=now_ms,
        members=members,
    )
    protocol = group.select_protocol()
    members = {
        member_id: replace(
            member, assignment=assignment_of(_held(left.members[member_id]), member.metadata(protocol), topics)
        )
        for member_id, member in members.items()
    }
    group = replace(group, protocol_name=protocol, members=members)
    return replace(group, subscribed_topics=subscribed_topics(group))


def _held(member: ConsumerMember) -> Partitions:
    """Also what it is about to give up."""
    assigned, revoking = member.progress.assigned, member.progress.revoking
    return {
        topic_id: frozenset({*assigned.get(topic_id, ()), *revoking.get(topic_id, ())})
        for topic_id in {**assigned, **revoking}
    }


def _is_settled(group: ConsumerGroup) -> bool:
    """Everybody has exactly what it is to have."""
    return all(
        _held(member) == {topic_id: held for topic_id, held in group.target.get(member.member_id, {}).items() if held}
        for member in group.members.values()
    )


def _classic_member(member: ConsumerMember) -> Member:
    profile = member.profile
    assert profile.classic is not None, "nobody else is left"
    return Member(
        member_id=member.member_id,
        client_id=profile.client_id,
        client_host=profile.client_host,
        session_timeout_ms=profile.classic.session_timeout_ms,
        rebalance_timeout_ms=profile.rebalance_timeout_ms,
        protocols=profile.classic.protocols,
        instance_id=profile.instance_id,
    )


def assignment_of(
    partitions: Mapping[bytes, frozenset[int] | Mapping[int, int]], subscription: bytes, topics: Topics
) -> bytes:
    """As a classic member reads it, by the names of topics."""
    named = {
        name: sorted(held)
        for topic_id, held in partitions.items()
        if held and (name := topics.name_of(topic_id)) is not None
    }
    return write_assignment(named, subscription)
