"""ListGroups, v0 to v5: the groups that this broker coordinates. v4 filters by state and tells it, v5 also by type."""

from __future__ import annotations

from asyncio import Future

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, in_turn
from moldau.broker.rights import CLUSTER, CLUSTER_NAME, DESCRIBE, GROUP
from moldau.core.errors import ErrorCode
from moldau.groups.classic.group import Group
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.view import groups_of, listing
from moldau.wire.api import ApiKey
from moldau.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


@api(ApiKey.LIST_GROUPS, ListGroupsRequest, versions=(0, 5))
def list_groups(
    request: ListGroupsRequest, context: Context
) -> ListGroupsResponse | Future[ListGroupsResponse | Encoded[ListGroupsResponse]]:
    shards = context.services.groups.shards()
    if isinstance(shards, ErrorCode):
        return ListGroupsResponse(error_code=shards)
    list_one = listing(request.states_filter, request.types_filter)
    sees_all = context.may(DESCRIBE, CLUSTER, CLUSTER_NAME, is_audited=False)

    def list_visible(group: Group | ConsumerGroup) -> ListedGroup | None:
        listed = list_one(group)
        if listed is None or sees_all or context.may(DESCRIBE, GROUP, listed.group_id, is_audited=False):
            return listed
        return None

    return in_turn(
        groups_of(shards),
        list_visible,
        lambda found: ListGroupsResponse(groups=[group for group in found if group is not None]),
        context,
    )
