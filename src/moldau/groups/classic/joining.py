"""JoinGroup: who may enter a classic group, under which id, and whether that begins a rebalance."""

from __future__ import annotations

from typing import TypeAlias

from msgspec.structs import replace

from moldau.core.decision import Decision, Delayed
from moldau.core.errors import ErrorCode
from moldau.groups.classic.group import Group, State
from moldau.groups.classic.members import Joining, Member, member_of
from moldau.groups.classic.rebalance import Turn, session_key
from moldau.groups.limits import GroupLimits
from moldau.wire.messages.join_group import JoinGroupResponse
from moldau.wire.messages.sync_group import SyncGroupResponse

JoinReply: TypeAlias = JoinGroupResponse | Delayed


def decide_join(group: Group | None, joining: Joining, *, limits: GroupLimits, now_ms: int) -> Decision[JoinReply]:
    refusal = check(joining, limits)
    if refusal is None and group is None and joining.member_id:
        refusal = ErrorCode.UNKNOWN_MEMBER_ID
    if refusal is not None:
        return Decision.reply_only(refused(refusal, joining.member_id))
    turn = Turn(group, joining.group_id, limits=limits, now_ms=now_ms)
    if not _has_room(turn.group, joining.member_id, limits.members_max):
        if joining.member_id in turn.group.members or joining.member_id in turn.group.pending:
            turn.remove((joining.member_id,))
        return turn.decide(refused(ErrorCode.GROUP_MAX_SIZE_REACHED))
    if not turn.group.supports(joining.protocol_type, joining.protocols):
        return Decision.reply_only(refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, joining.member_id))
    reply = _join_known(turn, joining) if joining.member_id else _join_new(turn, joining)
    return turn.decide(reply)


def check(joining: Joining, limits: GroupLimits) -> ErrorCode | None:
    """What is wrong with a request whatever the group is."""
    if not joining.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if not limits.session_timeout_ms_min <= joining.session_timeout_ms <= limits.session_timeout_ms_max:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return None


def refused(error: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, protocol_name=None, member_id=member_id)


def _has_room(group: Group, member_id: str, members_max: int) -> bool:
    """While a rebalance is prepared those count who have joined: the others may never come back."""
    member = group.members.get(member_id)
    if group.is_empty:
        return True
    if group.state is State.PREPARING:
        return (member is not None and member.is_joining) or group.joining_count < members_max
    return member is not None or len(group.members) < members_max


def _join_new(turn: Turn, joining: Joining) -> JoinReply:
    new_id = joining.new_member_id
    if joining.instance_id is not None:
        known_id = turn.group.static_member_id(joining.instance_id)
        if known_id is not None:
            return _replace_static(turn, joining, known_id)
    elif joining.must_know_id:
        turn.change(pending=turn.group.pending.with_ids((new_id,)))
        turn.set_timer(session_key(joining.group_id, new_id), joining.session_timeout_ms)
        return refused(ErrorCode.MEMBER_ID_REQUIRED, new_id)
    return _add(turn, joining, new_id)


def _add(turn: Turn, joining: Joining, member_id: str) -> JoinReply:
    turn.add(member_of(joining, member_id), joining.protocol_type)
    turn.rebalance()
    return turn.delay_join(member_id)


def _join_known(turn: Turn, joining: Joining) -> JoinReply:
    group, member_id = turn.group, joining.member_id
    if member_id in group.pending and joining.instance_id is None:
        return _add(turn, joining, member_id)
    error = group.check_member(member_id, joining.instance_id)
    if error is ErrorCode.NONE and group.is_empty:
        error = ErrorCode.UNKNOWN_MEMBER_ID
    if error is not ErrorCode.NONE:
        return refused(error, member_id)
    if _is_up_to_date(group, group.members[member_id], joining):
        return turn.joined(member_id)
    turn.put(_updated(group.members[member_id], joining))
    turn.rebalance()
    return turn.delay_join(member_id)


def _is_up_to_date(group: Group, member: Member, joining: Joining) -> bool:
    """The client missed our answer, so it gets it again. A stable group's leader wants a new assignment instead."""
    if group.state is State.PREPARING or member.protocols != joining.protocols:
        return False
    return group.state is State.COMPLETING or member.member_id != group.leader


def _updated(member: Member, joining: Joining) -> Member:
    return replace(
        member,
        protocols=joining.protocols,
        session_timeout_ms=joining.session_timeout_ms,
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        is_joining=True,
    )


def _replace_static(turn: Turn, joining: Joining, old_id: str) -> JoinReply:
    """A static member restarted: it takes its own place under a new id, and the old id is fenced off."""
    group, new_id = turn.group, joining.new_member_id
    old = group.members[old_id]
    turn.release_join(old, refused(ErrorCode.FENCED_INSTANCE_ID, old_id))
    turn.release_sync(old, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
    turn.cancel_timer(session_key(group.group_id, old_id))
    new = replace(_updated(old, joining), member_id=new_id, is_syncing=False)
    turn.await_heartbeat(new)
    turn.change(
        members={each.member_id: each for each in (new if known is old else known for known in group.members.values())},
        leader=new_id if group.leader == old_id else group.leader,
        unsynced=group.unsynced - {old_id} | ({new_id} if old_id in group.unsynced else set()),
    )
    if group.state is State.STABLE and turn.group.select_protocol() == group.protocol_name:
        return _without_rebalance(turn, joining, old_leader=group.leader)
    if group.state is State.PREPARING:
        turn.complete_if_joined()
    else:
        turn.prepare()
    return turn.delay_join(new_id)


def _without_rebalance(turn: Turn, joining: Joining, *, old_leader: str | None) -> JoinGroupResponse:
    """The assignment stays as it is. An old client that leads is told that it doesn't, so that it assigns nothing."""
    new_id = joining.new_member_id
    turn.put(replace(turn.group.members[new_id], is_joining=False))
    turn.log()
    if joining.may_skip_assignment:
        return turn.joined(new_id, skip_assignment=new_id == turn.group.leader)
    return turn.joined(new_id, leader=old_leader)
