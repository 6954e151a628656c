"""What is told about consumer groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from moldau.core.errors import ErrorCode
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.members import ConsumerMember
from moldau.groups.consumer.topics import Topics
from moldau.groups.shard import GroupShard
from moldau.wire.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def described_consumer_group(
    shard: GroupShard, group_id: str, *, topics: Topics, assignors: Sequence[str]
) -> DescribedGroup:
    group = shard.consumer_groups.get(group_id)
    if group is None:
        reason = "is not a consumer group" if group_id in shard.groups else "not found"
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=f"Group {group_id} {reason}.", group_id=group_id
        )
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor_name(assignors),
        members=[_member(group, member, topics) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, topics: Topics) -> Member:
    profile, progress = member.profile, member.progress
    held = {
        topic_id: [*progress.assigned.get(topic_id, ()), *progress.revoking.get(topic_id, ())]
        for topic_id in {**progress.assigned, **progress.revoking}
    }
    return Member(
        member_id=member.member_id,
        instance_id=profile.instance_id,
        rack_id=profile.rack_id,
        member_epoch=progress.epoch,
        client_id=profile.client_id,
        client_host=profile.client_host,
        subscribed_topic_names=sorted(profile.topics),
        subscribed_topic_regex=profile.regex,
        assignment=_assignment(held, topics),
        target_assignment=_assignment(group.target.get(member.member_id, {}), topics),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(held: Mapping[bytes, Collection[int]], topics: Topics) -> Assignment:
    """Topics that were deleted meanwhile have no name to be told by."""
    return Assignment(
        [
            TopicPartitions(topic_id, name, sorted(partitions))
            for topic_id, partitions in held.items()
            if (name := topics.name_of(topic_id)) is not None
        ]
    )
