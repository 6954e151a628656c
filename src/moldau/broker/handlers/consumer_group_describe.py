"""ConsumerGroupDescribe, v0 to v1: state and members of consumer groups. v1 tells which protocol a member speaks."""

from __future__ import annotations

from asyncio import Future

from moldau.broker.api import api
from moldau.broker.authorized_operations import ON_GROUP
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, in_turn, refuse_repetition
from moldau.controller.settings.features import has_consumer_groups
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.groups.consumer.view import described_consumer_group
from moldau.groups.shard import GroupShard
from moldau.wire.api import ApiKey
from moldau.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


@api(ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest, versions=(0, 1))
def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, context: Context
) -> ConsumerGroupDescribeResponse | Future[ConsumerGroupDescribeResponse | Encoded[ConsumerGroupDescribeResponse]]:
    refuse_repetition(request.group_ids)
    if not has_consumer_groups(context.services.controller.image, context.services.config):
        error = ErrorCode.UNSUPPORTED_VERSION
        refused = [DescribedGroup(error_code=error, group_id=group_id) for group_id in request.group_ids]
        return ConsumerGroupDescribeResponse(groups=refused)

    def shape(groups: list[DescribedGroup]) -> ConsumerGroupDescribeResponse:
        if request.include_authorized_operations:
            for group in groups:
                if group.error_code == ErrorCode.NONE:
                    group.authorized_operations = ON_GROUP
        return ConsumerGroupDescribeResponse(groups=groups)

    def members(groups: list[DescribedGroup]) -> int:
        return sum([1 + len(group.members) for group in groups])

    return in_turn(request.group_ids, lambda group_id: _describe(group_id, context), shape, context, rows=members)


def _describe(group_id: str, context: Context) -> DescribedGroup | Future[DescribedGroup]:
    groups = context.services.groups

    def decide(shard: GroupShard, _: int) -> Decision[DescribedGroup]:
        assignors = groups.config_of(group_id).assignors
        return Decision.reply_only(described_consumer_group(shard, group_id, topics=groups.topics, assignors=assignors))

    def failed(error: ErrorCode) -> DescribedGroup:
        return DescribedGroup(error_code=error, group_id=group_id)

    if not group_id:
        return failed(ErrorCode.INVALID_GROUP_ID)
    return groups.write(group_id, decide, failed)
