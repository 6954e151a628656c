"""LeaveGroup, v0 to v5: members leave at once instead of by a time-out. v3 takes many, with an answer for each."""

from __future__ import annotations

from asyncio import Future

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.groups.classic.membership import Leaving
from moldau.groups.shard import GroupShard
from moldau.wire.api import ApiKey
from moldau.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

MANY_SINCE = 3


@api(ApiKey.LEAVE_GROUP, LeaveGroupRequest, versions=(0, 5))
def leave_group(request: LeaveGroupRequest, context: Context) -> LeaveGroupResponse | Future[LeaveGroupResponse]:
    if not request.group_id:
        return _failed(ErrorCode.INVALID_GROUP_ID)
    takes_many = context.version >= MANY_SINCE
    leaving = [Leaving(request.member_id)]
    if takes_many:
        leaving = [Leaving(each.member_id, each.group_instance_id) for each in request.members]

    def shape(errors: list[ErrorCode]) -> LeaveGroupResponse:
        if not takes_many:
            return LeaveGroupResponse(error_code=errors[0])
        return LeaveGroupResponse(
            members=[
                MemberResponse(member_id=each.member_id, group_instance_id=each.instance_id, error_code=error)
                for each, error in zip(leaving, errors, strict=True)
            ]
        )

    def decide(shard: GroupShard, now_ms: int) -> Decision[LeaveGroupResponse]:
        return shard.decide_leave(request.group_id, leaving, now_ms).shaped(shape)

    return context.services.groups.write(request.group_id, decide, _failed)


def _failed(error: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error)
