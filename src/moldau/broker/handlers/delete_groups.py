"""DeleteGroups, v0 to v2: forget groups without members, and what they committed."""

from __future__ import annotations

from asyncio import Future

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, in_turn
from moldau.broker.rights import DELETE, GROUP
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.groups.shard import GroupShard
from moldau.wire.api import ApiKey
from moldau.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


@api(ApiKey.DELETE_GROUPS, DeleteGroupsRequest, versions=(0, 2))
def delete_groups(
    request: DeleteGroupsRequest, context: Context
) -> DeleteGroupsResponse | Future[DeleteGroupsResponse | Encoded[DeleteGroupsResponse]]:
    each_once = dict.fromkeys(request.groups_names)
    return in_turn(each_once, lambda group_id: _delete(group_id, context), _response, context)


def _delete(group_id: str, context: Context) -> DeletableGroupResult | Future[DeletableGroupResult]:
    def shape(error: ErrorCode) -> DeletableGroupResult:
        return DeletableGroupResult(group_id=group_id, error_code=error)

    if not context.may(DELETE, GROUP, group_id):
        return shape(ErrorCode.GROUP_AUTHORIZATION_FAILED)

    def decide(shard: GroupShard, _: int) -> Decision[DeletableGroupResult]:
        return shard.decide_delete_group(group_id).shaped(shape)

    return context.services.groups.write(group_id, decide, shape)


def _response(results: list[DeletableGroupResult]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=results)
