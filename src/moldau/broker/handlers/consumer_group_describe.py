"""ConsumerGroupDescribe, v0 to v1: state and members of consumer groups. v1 tells which protocol a member speaks."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Iterator

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, in_turn, refuse_repetition
from moldau.broker.rights import DESCRIBE, GROUP, TOPIC, operations_on_group
from moldau.controller.settings.features import has_consumer_groups
from moldau.coordinator.long_work import in_slices
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.limits import LARGE_REQUEST_PART
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
        return Decision.reply_only(described_consumer_group(shard, group_id, topics=groups.topics, assignors=assignors))

    def failed(error: ErrorCode) -> DescribedGroup:
        return DescribedGroup(error_code=error, group_id=group_id)

    if not group_id:
        return failed(ErrorCode.INVALID_GROUP_ID)
    answer = groups.write(group_id, decide, failed)
    if context.services.authorization is None:
        return answer
    if isinstance(answer, Future) or _count(answer) > LARGE_REQUEST_PART:
        return context.start(_judged(answer, context))
    return _hidden(answer) if any(not context.may(DESCRIBE, TOPIC, name) for name in _names(answer)) else answer


async def _judged(answer: DescribedGroup | Future[DescribedGroup], context: Context) -> DescribedGroup:
    """What the group's members are about is judged until the first topic that the client may not see."""
    group = await answer if isinstance(answer, Future) else answer
    seen: set[str] = set()
    async for name in in_slices(_names(group), context.services.long_work):
        if name not in seen and not context.may(DESCRIBE, TOPIC, name):
            return _hidden(group)
        seen.add(name)
    return group


def _names(group: DescribedGroup) -> Iterator[str]:
    """The topics of its members, as often as they are named."""
    for member in group.members:
        yield from member.subscribed_topic_names
        for assignment in (member.assignment, member.target_assignment):
            yield from (each.topic_name for each in assignment.topic_partitions)


def _count(group: DescribedGroup) -> int:
    return sum(
        [
            len(member.subscribed_topic_names)
            + len(member.assignment.topic_partitions)
            + len(member.target_assignment.topic_partitions)
            for member in group.members
        ]
    )


def _hidden(group: DescribedGroup) -> DescribedGroup:
    return DescribedGroup(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message="The group has described topic(s) that the client is not authorized to describe.",
        group_id=group.group_id,
    )
