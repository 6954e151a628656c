"""ConsumerGroupDescribe, v0 to v1: state and members of consumer groups. v1 tells which protocol a member speaks."""

from __future__ import annotations

from asyncio import Future

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, in_turn, refuse_repetition
from moldau.broker.rights import DESCRIBE, GROUP, TOPIC, operations_on_group
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
    denied = context.denied(DESCRIBE, GROUP, request.group_ids)
    operations: dict[str, int] = {}

    def shape(groups: list[DescribedGroup]) -> ConsumerGroupDescribeResponse:
        for group in groups:
            if operations and group.error_code == ErrorCode.NONE:
                group.authorized_operations = operations[group.group_id]
        return ConsumerGroupDescribeResponse(groups=groups)

    def members(groups: list[DescribedGroup]) -> int:
        return sum([1 + len(group.members) for group in groups])

    def describe(group_id: str) -> DescribedGroup | Future[DescribedGroup]:
        if group_id in denied:
            return DescribedGroup(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=group_id)
        if request.include_authorized_operations:
            operations[group_id] = operations_on_group(context, group_id)
        return _describe(group_id, context)

    return in_turn(request.group_ids, describe, shape, context, rows=members)


def _describe(group_id: str, context: Context) -> DescribedGroup | Future[DescribedGroup]:
    groups = context.services.groups

    def decide(shard: GroupShard, _: int) -> Decision[DescribedGroup]:
        assignors = groups.config_of(group_id).assignors
        described = described_consumer_group(shard, group_id, topics=groups.topics, assignors=assignors)
        return Decision.reply_only(_hidden(described) if _shows_denied(described, context) else described)

    def failed(error: ErrorCode) -> DescribedGroup:
        return DescribedGroup(error_code=error, group_id=group_id)

    if not group_id:
        return failed(ErrorCode.INVALID_GROUP_ID)
    return groups.write(group_id, decide, failed)


def _shows_denied(group: DescribedGroup, context: Context) -> bool:
    """Whether its members are about topics that the client may not see."""
    if context.services.authorization is None:
        return False
    names = dict.fromkeys(
        each.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for each in assignment.topic_partitions
    )
    names |= dict.fromkeys(name for member in group.members for name in member.subscribed_topic_names)
    return bool(context.denied(DESCRIBE, TOPIC, names))


def _hidden(group: DescribedGroup) -> DescribedGroup:
    return DescribedGroup(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message="The group has described topic(s) that the client is not authorized to describe.",
        group_id=group.group_id,
    )
