"""SyncGroup, v0 to v5: the leader hands in the assignment, and every member takes its part of it.

v3 adds static members, v5 names the protocol so that a mismatch is noticed.
"""

from __future__ import annotations

from asyncio import Future

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.rights import GROUP, READ
from moldau.core.errors import ErrorCode
from moldau.groups.classic.membership import Syncing
from moldau.wire.api import ApiKey
from moldau.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_SINCE = 5


@api(ApiKey.SYNC_GROUP, SyncGroupRequest, versions=(0, 5))
def sync_group(request: SyncGroupRequest, context: Context) -> SyncGroupResponse | Future[SyncGroupResponse]:
    if context.version >= PROTOCOL_SINCE and (request.protocol_type is None or request.protocol_name is None):
        return _failed(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not context.may(READ, GROUP, request.group_id):
        return _failed(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    syncing = Syncing(
        group_id=request.group_id,
        member_id=request.member_id,
        generation=request.generation_id,
        instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments={each.member_id: bytes(each.assignment) for each in request.assignments},
    )
    return context.services.groups.write(
        request.group_id, lambda shard, now_ms: shard.decide_sync(syncing, now_ms), _failed
    )


def _failed(error: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error)
