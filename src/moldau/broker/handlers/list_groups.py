"""ListGroups, v0 to v5: the groups that this broker coordinates. v4 filters by state and tells it, v5 also by type."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.core.errors import ErrorCode
from moldau.groups.view import listed
from moldau.wire.api import ApiKey
from moldau.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse


@api(ApiKey.LIST_GROUPS, ListGroupsRequest, versions=(0, 5))
def list_groups(request: ListGroupsRequest, context: Context) -> ListGroupsResponse:
    shards = context.services.groups.shards()
    if isinstance(shards, ErrorCode):
        return ListGroupsResponse(error_code=shards)
    return ListGroupsResponse(groups=listed(shards, request.states_filter, request.types_filter))
