"""What is told about groups: lists, descriptions and committed offsets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping

from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_OFFSET, ZERO_UUID
from moldau.groups.classic.group import CONSUMER_PROTOCOL_TYPE, Group, State
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.records import CommittedOffset
from moldau.groups.shard import GroupShard
from moldau.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from moldau.wire.messages.list_groups import ListedGroup
from moldau.wire.messages.offset_fetch import OffsetFetchResponsePartitions, OffsetFetchResponseTopics

CLASSIC = "classic"
CONSUMER = "consumer"
DEAD = "Dead"


def listing(states: Collection[str], types: Collection[str]) -> Callable[[Group | ConsumerGroup], ListedGroup | None]:
    """A line for each group that passes both filters; an empty one lets everything pass, and case does not matter."""
    wanted_states = {state.lower() for state in states}
    wanted_types = {each.lower() for each in types}

    def line(group: Group | ConsumerGroup) -> ListedGroup | None:
        found = _listed(group)
        is_wanted = (not wanted_states or found.group_state.lower() in wanted_states) and (
            not wanted_types or found.group_type in wanted_types
        )
        return found if is_wanted else None

    return line


def groups_of(shards: Iterable[GroupShard]) -> list[Group | ConsumerGroup]:
    groups: list[Group | ConsumerGroup] = []
    for shard in shards:
        groups += shard.groups.values()
        groups += shard.consumer_groups.values()
    return groups


def _listed(group: Group | ConsumerGroup) -> ListedGroup:
    is_classic = isinstance(group, Group)
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=(group.protocol_type or "") if isinstance(group, Group) else CONSUMER_PROTOCOL_TYPE,
        group_state=group.state.value,
        group_type=CLASSIC if is_classic else CONSUMER,
    )


def described(shard: GroupShard, group_id: str, *, missing_is_error: bool) -> DescribedGroup:
    """A classic group. Without an assignment that holds, subscriptions are not shown."""
    group = shard.groups.get(group_id)
    if group is None:
        error = ErrorCode.GROUP_ID_NOT_FOUND if missing_is_error else ErrorCode.NONE
        reason = "is not a classic group" if group_id in shard.consumer_groups else "not found"
        message = f"Group {group_id} {reason}." if missing_is_error else None
        return DescribedGroup(error_code=error, error_message=message, group_id=group_id, group_state=DEAD)
    protocol = group.protocol_name if group.state is State.STABLE else None
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=b"" if protocol is None else member.metadata(protocol),
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def fetched(
    committed: Mapping[int, CommittedOffset],
    topic: str,
    partitions: Iterable[int],
    *,
    topic_id: bytes = ZERO_UUID,
    unstable: Container[int] = (),
) -> OffsetFetchResponseTopics:
    """What a group committed for these partitions of a topic; -1 where nothing is.

    Partitions that an open transaction may change are `unstable` if an error is required for them instead. What was
    committed for another topic of the same name, whose deletion a crash may have hidden from us, is nothing.
    """
    found = []
    for partition in partitions:
        value = committed.get(partition)
        if partition in unstable:
            one = OffsetFetchResponsePartitions(
                partition_index=partition,
                committed_offset=NO_OFFSET,
                error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
            )
        elif value is None or (value.topic_id != topic_id and ZERO_UUID not in (value.topic_id, topic_id)):
            one = OffsetFetchResponsePartitions(partition_index=partition, committed_offset=NO_OFFSET)
        else:
            one = OffsetFetchResponsePartitions(
                partition_index=partition,
                committed_offset=value.offset,
                committed_leader_epoch=value.leader_epoch,
                metadata=value.metadata,
            )
        found.append(one)
    return OffsetFetchResponseTopics(name=topic, partitions=found)
