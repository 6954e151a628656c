"""LeaveGroup, v0 to v5: members leave at once instead of by a time-out. v3 takes many, with an answer for each."""

from __future__ import annotations

from asyncio import Future

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, in_turn
from moldau.broker.rights import GROUP, READ
from moldau.coordinator.long_work import chunks
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.groups.classic.membership import Leaving
from moldau.groups.shard import GroupShard
from moldau.wire.api import ApiKey
from moldau.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse

MANY_SINCE = 3
LEAVING_AT_ONCE_MAX = 100  # each costs the more the larger the group is


@api(ApiKey.LEAVE_GROUP, LeaveGroupRequest, versions=(0, 5))
def leave_group(
    request: LeaveGroupRequest, context: Context
) -> LeaveGroupResponse | Future[LeaveGroupResponse | Encoded[LeaveGroupResponse]]:
    if not context.may(READ, GROUP, request.group_id):
        return _failed(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return _failed(ErrorCode.INVALID_GROUP_ID)
    takes_many = context.version >= MANY_SINCE
    members = request.members if takes_many else [MemberIdentity(member_id=request.member_id)]

    def leave(some: list[MemberIdentity]) -> list[ErrorCode] | ErrorCode | Future[list[ErrorCode] | ErrorCode]:
        leaving = [Leaving(each.member_id, each.group_instance_id) for each in some]

        def decide(shard: GroupShard, now_ms: int) -> Decision[list[ErrorCode] | ErrorCode]:
            return shard.decide_leave(request.group_id, leaving, now_ms)

        return context.services.groups.write(request.group_id, decide, lambda error: error)

    def shape(answers: list[list[ErrorCode] | ErrorCode]) -> LeaveGroupResponse:
        errors: list[ErrorCode] = []
        for answer in answers:
            if isinstance(answer, ErrorCode):
                return _failed(answer)
            errors += answer
        if not takes_many:
            return LeaveGroupResponse(error_code=errors[0])
        return LeaveGroupResponse(
            members=[
                MemberResponse(member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=error)
                for each, error in zip(members, errors, strict=True)
            ]
        )

    parts = chunks(members, LEAVING_AT_ONCE_MAX) if members else iter(([],))
    return in_turn(parts, leave, shape, context, rows=lambda _: len(members))


def _failed(error: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error)
