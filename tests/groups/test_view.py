from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.core.ids import ZERO_UUID
from moldau.groups.classic.group import Group, State
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.members import ConsumerMember
from moldau.groups.limits import GroupLimits
from moldau.groups.records import CommittedOffset, OffsetCommitted
from moldau.groups.shard import GroupShard
from moldau.groups.view import described, fetched, groups_of, listing
from moldau.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from moldau.wire.messages.list_groups import ListedGroup
from moldau.wire.messages.offset_fetch import OffsetFetchResponsePartitions, OffsetFetchResponseTopics
from tests.groups.worlds import GROUP, RANGE, World, stable


def shards() -> list[GroupShard]:
    """Two shards with a group of each kind, and a simple one."""
    first, second = GroupShard(GroupLimits()), GroupShard(GroupLimits())
    first.groups["simple"] = Group("simple")
    second.groups["busy"] = Group("busy", state=State.STABLE, protocol_type="connect")
    second.consumer_groups["new"] = ConsumerGroup("new", members={"a": ConsumerMember("a")}, epoch=2)
    return [first, second]


def listed(states: list[str], types: list[str]) -> list[ListedGroup]:
    return [found for found in map(listing(states, types), groups_of(shards())) if found is not None]


@pytest.mark.parametrize(
    ("states", "types", "names"),
    [
        ([], [], ["simple", "busy", "new"]),
        (["Empty"], [], ["simple"]),
        (["stABLE", "Dead"], ["Classic"], ["busy"]),
        (["Assigning"], [], ["new"]),
        ([], ["consumer"], ["new"]),
        ([], ["Consumer", "classic"], ["simple", "busy", "new"]),
    ],
)
def test_filters(states: list[str], types: list[str], names: list[str]) -> None:
    assert [each.group_id for each in listed(states, types)] == names


def test_what_is_listed_of_a_group() -> None:
    (_, busy, new) = listed([], [])
    assert (busy.protocol_type, busy.group_state, busy.group_type) == ("connect", "Stable", "classic")
    assert (new.protocol_type, new.group_state, new.group_type) == ("consumer", "Assigning", "consumer")


def test_a_stable_group_shows_subscriptions_and_assignments() -> None:
    world = stable("a", client_id="c", client_host="/127.0.0.1")
    assert described(world.shard, GROUP, missing_is_error=True) == DescribedGroup(
        group_id=GROUP,
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=[
            DescribedGroupMember(
                member_id="a",
                client_id="c",
                client_host="/127.0.0.1",
                member_metadata=RANGE.metadata,
                member_assignment=b"a",
            )
        ],
    )


def test_during_a_rebalance_there_is_no_protocol_to_show() -> None:
    world = World()
    world.enter("a")
    shown = described(world.shard, GROUP, missing_is_error=False)
    assert (shown.group_state, shown.protocol_data) == ("PreparingRebalance", "")
    assert [each.member_metadata for each in shown.members] == [b""]


def test_a_group_that_is_not_there_is_dead_or_an_error() -> None:
    assert described(World().shard, "x", missing_is_error=False) == DescribedGroup(group_id="x", group_state="Dead")
    assert described(World().shard, "x", missing_is_error=True) == DescribedGroup(
        error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message="Group x not found.", group_id="x", group_state="Dead"
    )


def test_a_consumer_group_is_not_described_as_a_classic_one() -> None:
    (_, shard) = shards()
    assert described(shard, "new", missing_is_error=True) == DescribedGroup(
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message="Group new is not a classic group.",
        group_id="new",
        group_state="Dead",
    )


def test_offsets_that_were_never_committed_are_minus_one() -> None:
    world = World()
    world.shard.apply(OffsetCommitted(GROUP, "orders", 1, CommittedOffset(41, 3, "note")))
    assert fetched(world.shard.offsets_of(GROUP)["orders"], "orders", [1, 2]) == OffsetFetchResponseTopics(
        name="orders",
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=1, committed_offset=41, committed_leader_epoch=3, metadata="note"
            ),
            OffsetFetchResponsePartitions(partition_index=2, committed_offset=-1),
        ],
    )


def test_what_an_open_transaction_may_change_is_unstable_for_who_asks() -> None:
    world = World()
    world.shard.apply(OffsetCommitted(GROUP, "orders", 1, CommittedOffset(41)))
    committed = world.shard.offsets_of(GROUP)["orders"]
    (stable_only,) = fetched(committed, "orders", [1], unstable={1}).partitions
    assert (stable_only.committed_offset, stable_only.error_code) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    (any_,) = fetched(committed, "orders", [1], unstable={2}).partitions
    assert (any_.committed_offset, any_.error_code) == (41, ErrorCode.NONE)


@pytest.mark.parametrize(
    ("committed_for", "asked_for", "offset"),
    [(b"a" * 16, b"a" * 16, 41), (b"a" * 16, b"b" * 16, -1), (b"a" * 16, ZERO_UUID, 41), (ZERO_UUID, b"b" * 16, 41)],
)
def test_an_offset_of_another_topic_of_that_name_is_none(committed_for: bytes, asked_for: bytes, offset: int) -> None:
    world = World()
    world.shard.apply(OffsetCommitted(GROUP, "orders", 1, CommittedOffset(41, topic_id=committed_for)))
    (found,) = fetched(world.shard.offsets_of(GROUP)["orders"], "orders", [1], topic_id=asked_for).partitions
    assert (found.committed_offset, found.error_code) == (offset, ErrorCode.NONE)
