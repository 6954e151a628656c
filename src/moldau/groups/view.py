"""What is told about groups: lists, descriptions and committed offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from moldau.core.errors import ErrorCode
from moldau.groups.group import Group, State
from moldau.groups.shard import GroupShard
from moldau.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from moldau.wire.messages.list_groups import ListedGroup
from moldau.wire.messages.offset_fetch import OffsetFetchResponsePartitions, OffsetFetchResponseTopics

CLASSIC = "classic"
DEAD = "Dead"
NO_OFFSET = -1


def listed(groups: Iterable[Group], states: Collection[str], types: Collection[str]) -> list[ListedGroup]:
    """Those that pass both filters; an empty filter lets everything pass, and case does not matter."""
    wanted_states = {state.lower() for state in states}
    wanted_types = {each.lower() for each in types}
    if wanted_types and CLASSIC not in wanted_types:
        return []
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=CLASSIC,
        )
        for group in groups
        if not wanted_states or group.state.value.lower() in wanted_states
    ]


def described(group: Group | None, group_id: str, *, missing_is_error: bool) -> DescribedGroup:
    """Without an assignment that holds, subscriptions are not shown."""
    if group is None:
        error = ErrorCode.GROUP_ID_NOT_FOUND if missing_is_error else ErrorCode.NONE
        message = f"Group {group_id} not found." if missing_is_error else None
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
    shard: GroupShard, group_id: str, topic: str, partitions: Iterable[int], *, require_stable: bool = False
) -> OffsetFetchResponseTopics:
    """What a group committed for these partitions of a topic; -1 where nothing is.

    Where an open transaction may change it, an error can be required instead.
    """
    committed = shard.offsets_of(group_id).get(topic, {})
    found = []
    for partition in partitions:
        value = committed.get(partition)
        if require_stable and shard.pending.has(group_id, topic, partition):
            one = OffsetFetchResponsePartitions(
                partition_index=partition,
                committed_offset=NO_OFFSET,
                error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
            )
        elif value is None:
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
