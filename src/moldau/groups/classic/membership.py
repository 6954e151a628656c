"""SyncGroup, Heartbeat and LeaveGroup of classic groups, and what happens when their time is up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from moldau.core.decision import Decision, Delayed, Timer
from moldau.core.errors import ErrorCode
from moldau.groups.classic.group import Event, Group, State, Window, advance
from moldau.groups.classic.rebalance import Turn, join_key, session_key, sync_key
from moldau.groups.limits import GroupLimits
from moldau.wire.messages.sync_group import SyncGroupResponse

SyncReply: TypeAlias = SyncGroupResponse | Delayed


class Syncing(msgspec.Struct, frozen=True, kw_only=True):
    """A SyncGroup request in the coordinator's words."""

    group_id: str
    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Mapping[str, bytes] = msgspec.field(default_factory=dict)


class Leaving(NamedTuple):
    member_id: str
    instance_id: str | None = None


def decide_sync(group: Group | None, syncing: Syncing, *, limits: GroupLimits, now_ms: int) -> Decision[SyncReply]:
    error = _check_sync(group, syncing)
    if error is not ErrorCode.NONE:
        return Decision.reply_only(SyncGroupResponse(error_code=error))
    assert group is not None, "a group that is not there was refused"
    turn = Turn(group, group.group_id, limits=limits, now_ms=now_ms)
    _note_synced(turn, syncing.member_id)
    if group.state is State.STABLE:
        return turn.decide(_assigned(turn.group, syncing.member_id))
    if syncing.member_id == group.leader:
        assigned: Decision[SyncReply] = turn.decide(_assign(turn, syncing))
        return replace(assigned, otherwise=lambda now_ms: _decide_unassigned(group, limits, now_ms))
    turn.put(replace(turn.group.members[syncing.member_id], is_syncing=True))
    return turn.decide(Delayed(sync_key(group.group_id, syncing.member_id)))


def _check_sync(group: Group | None, syncing: Syncing) -> ErrorCode:
    if not syncing.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if group is None or group.is_empty:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.check_member(syncing.member_id, syncing.instance_id)
    if error is not ErrorCode.NONE:
        return error
    if syncing.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    given = ((syncing.protocol_type, group.protocol_type), (syncing.protocol_name, group.protocol_name))
    if any(None not in pair and pair[0] != pair[1] for pair in given):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is State.PREPARING else ErrorCode.NONE


def _note_synced(turn: Turn, member_id: str) -> None:
    unsynced = turn.group.unsynced
    if member_id in unsynced:
        turn.change(unsynced=unsynced - {member_id})
        if not turn.group.unsynced:
            turn.cancel_timer(sync_key(turn.group.group_id))


def _assign(turn: Turn, syncing: Syncing) -> SyncGroupResponse:
    """The leader's assignment makes the generation stable; who isn't mentioned gets nothing."""
    waiting = list(turn.group.members.values())
    turn.change(
        members={
            member.member_id: replace(
                member, assignment=syncing.assignments.get(member.member_id, b""), is_syncing=False
            )
            for member in waiting
        },
        state=advance(turn.group.state, Event.ASSIGNED),
        state_since_ms=turn.now_ms,
    )
    turn.log()
    for member in waiting:
        if member.is_syncing or member.member_id == syncing.member_id:
            turn.release_sync(member, _assigned(turn.group, member.member_id))
            turn.await_heartbeat(member)
    return _assigned(turn.group, syncing.member_id)


def _decide_unassigned(group: Group, limits: GroupLimits, now_ms: int) -> Decision[SyncReply]:
    """An assignment that can't be stored: whoever waits for it hears so, and all of them join again."""
    refused = SyncGroupResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    turn = Turn(group, group.group_id, limits=limits, now_ms=now_ms)
    for member in group.members.values():
        turn.release_sync(member, refused)
        turn.await_heartbeat(member)
    turn.change(members={each.member_id: replace(each, is_syncing=False) for each in group.members.values()})
    turn.rebalance()
    return turn.decide(refused)


def _assigned(group: Group, member_id: str) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=group.members[member_id].assignment,
    )


def decide_heartbeat(
    group: Group | None, member_id: str, generation: int, *, instance_id: str | None, now_ms: int
) -> Decision[ErrorCode]:
    if group is None:
        return Decision.reply_only(ErrorCode.UNKNOWN_MEMBER_ID)
    error = group.check_member(member_id, instance_id)
    if error is ErrorCode.NONE and generation != group.generation:
        error = ErrorCode.ILLEGAL_GENERATION
    if error is not ErrorCode.NONE:
        return Decision.reply_only(error)
    timeout_ms = group.members[member_id].session_timeout_ms
    deadline = Timer(session_key(group.group_id, member_id), now_ms + timeout_ms)
    reply = ErrorCode.REBALANCE_IN_PROGRESS if group.state is State.PREPARING else ErrorCode.NONE
    return Decision(records=(), reply=reply, timers=(deadline,))


def decide_leave(
    group: Group | None, group_id: str, leaving: Sequence[Leaving], *, limits: GroupLimits, now_ms: int
) -> Decision[list[ErrorCode]]:
    """One answer for each who leaves, and one rebalance for all of them."""
    if group is None:
        return Decision.reply_only([ErrorCode.UNKNOWN_MEMBER_ID] * len(leaving))
    turn = Turn(group, group_id, limits=limits, now_ms=now_ms)
    replies = [_leave(turn, each) for each in leaving]
    if ErrorCode.NONE in replies and not turn.group.is_empty:
        turn.rebalance()
    return turn.decide(replies)


def _leave(turn: Turn, leaving: Leaving) -> ErrorCode:
    """An administrator names static members by instance id alone."""
    group, member_id = turn.group, leaving.member_id
    if not member_id:
        known = None if leaving.instance_id is None else group.static_member_id(leaving.instance_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = known
    elif member_id not in group.pending:
        error = group.check_member(member_id, leaving.instance_id)
        if error is not ErrorCode.NONE:
            return error
    turn.remove((member_id,))
    return ErrorCode.NONE


def decide_session_expired(
    group: Group | None, group_id: str, member_id: str, *, limits: GroupLimits, now_ms: int
) -> Decision[None]:
    """A member was silent for too long. One that waits for us, or is gone already, was not."""
    if group is None:
        return Decision.reply_only(None)
    member = group.members.get(member_id)
    if (member is None or member.is_waiting) and member_id not in group.pending:
        return Decision.reply_only(None)
    turn = Turn(group, group_id, limits=limits, now_ms=now_ms)
    turn.remove((member_id,))
    if group.state in (State.STABLE, State.COMPLETING) and member is not None:
        turn.prepare()
    elif group.state is State.PREPARING and turn.group.all_joined:
        turn.complete_join()
    return turn.decide(None)


def decide_overfull(group: Group, *, limits: GroupLimits, now_ms: int) -> Decision[None]:
    """`group.max.size` was lowered before a restart: all join again, after they could commit, and not all get in."""
    turn = Turn(group, group.group_id, limits=limits, now_ms=now_ms)
    turn.rebalance()
    return turn.decide(None)


def decide_join_expired(group: Group | None, group_id: str, *, limits: GroupLimits, now_ms: int) -> Decision[None]:
    """The time to join is over. A new group goes on waiting while members keep coming, up to its longest time-out."""
    if group is None or group.state is not State.PREPARING:
        return Decision.reply_only(None)
    turn = Turn(group, group_id, limits=limits, now_ms=now_ms)
    window = group.window
    if window is not None and window.has_grown and window.remaining_ms > 0:
        delay_ms = min(limits.initial_rebalance_delay_ms, window.remaining_ms)
        turn.change(window=Window(delay_ms, max(window.remaining_ms - window.delay_ms, 0)))
        turn.set_timer(join_key(group_id), delay_ms)
    else:
        turn.complete_join()
    return turn.decide(None)


def decide_sync_expired(group: Group | None, group_id: str, *, limits: GroupLimits, now_ms: int) -> Decision[None]:
    """Members that did not fetch their assignment are taken for dead."""
    if group is None or group.state not in (State.COMPLETING, State.STABLE) or not group.unsynced:
        return Decision.reply_only(None)
    turn = Turn(group, group_id, limits=limits, now_ms=now_ms)
    turn.remove(group.unsynced)
    turn.prepare()
    return turn.decide(None)
