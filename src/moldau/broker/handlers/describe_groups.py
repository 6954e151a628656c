"""DescribeGroups, v0 to v6: state and members of classic groups.

v3 adds the operations that the client may ask for, v4 static members; v6 has an error for a group that isn't there.
"""

from __future__ import annotations

from asyncio import Future

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, in_turn, refuse_repetition
from moldau.broker.rights import DESCRIBE, GROUP, operations_on_group
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.groups.shard import GroupShard
from moldau.groups.view import described
from moldau.wire.api import ApiKey
from moldau.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse

MISSING_IS_ERROR_SINCE = 6


@api(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest, versions=(0, 6))
def describe_groups(
    request: DescribeGroupsRequest, context: Context
) -> DescribeGroupsResponse | Future[DescribeGroupsResponse | Encoded[DescribeGroupsResponse]]:
    refuse_repetition(request.groups)
    denied = context.denied(DESCRIBE, GROUP, request.groups)
    operations: dict[str, int] = {}

    def shape(groups: list[DescribedGroup]) -> DescribeGroupsResponse:
        for group in groups:
            if operations and group.error_code == ErrorCode.NONE:
                group.authorized_operations = operations[group.group_id]
        return DescribeGroupsResponse(groups=groups)

    def members(groups: list[DescribedGroup]) -> int:
        return sum([1 + len(group.members) for group in groups])

    def describe(group_id: str) -> DescribedGroup | Future[DescribedGroup]:
        if group_id in denied:
            return DescribedGroup(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=group_id)
        if request.include_authorized_operations:
            operations[group_id] = operations_on_group(context, group_id)
        return _describe(group_id, context)

    return in_turn(request.groups, describe, shape, context, rows=members)


def _describe(group_id: str, context: Context) -> DescribedGroup | Future[DescribedGroup]:
    def decide(shard: GroupShard, _: int) -> Decision[DescribedGroup]:
        is_error = context.version >= MISSING_IS_ERROR_SINCE
        return Decision.reply_only(described(shard, group_id, missing_is_error=is_error))

    def failed(error: ErrorCode) -> DescribedGroup:
        return DescribedGroup(error_code=error, group_id=group_id)

    return context.services.groups.write(group_id, decide, failed)
