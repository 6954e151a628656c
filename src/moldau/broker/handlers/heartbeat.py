"""Heartbeat, v0 to v4: a member is alive, and hears whether the group rebalances. v3 adds static members."""

from __future__ import annotations

from asyncio import Future

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.rights import GROUP, READ
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.groups.shard import GroupShard
from moldau.wire.api import ApiKey
from moldau.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


@api(ApiKey.HEARTBEAT, HeartbeatRequest, versions=(0, 4))
def heartbeat(request: HeartbeatRequest, context: Context) -> HeartbeatResponse | Future[HeartbeatResponse]:
    if not context.may(READ, GROUP, request.group_id):
        return _response(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return _response(ErrorCode.INVALID_GROUP_ID)

    def decide(shard: GroupShard, now_ms: int) -> Decision[HeartbeatResponse]:
        return shard.decide_heartbeat(
            request.group_id,
            request.member_id,
            request.generation_id,
            instance_id=request.group_instance_id,
            now_ms=now_ms,
        ).shaped(_response)

    return context.services.groups.write(request.group_id, decide, _failed)


def _response(error: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error)


def _failed(error: ErrorCode) -> HeartbeatResponse:
    """While the group is being loaded nobody's session can run out, so a member has nothing to worry about."""
    return _response(ErrorCode.NONE if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error)
