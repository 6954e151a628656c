"""How far a group is behind, of what its members have and of what nobody has."""

from __future__ import annotations

from moldau.client.cluster import Node
from moldau.client.groups.committed import Committed
from moldau.client.groups.describing import Group, Member
from moldau.client.groups.lag import GroupLag, PartitionLag, partition_lags
from moldau.core.ids import TopicPartition

NODE = Node(0, "localhost", 9092)


def place(number: int, topic: str = "orders") -> TopicPartition:
    return TopicPartition(topic, number)


def member(name: str, *places: TopicPartition) -> Member:
    return Member(name, None, "clerk", "/127.0.0.1", places)


def group(*members: Member, state: str = "Stable") -> Group:
    return Group("billing", "Classic", "consumer", state, "range", NODE, members)


def test_members_with_most_partitions_come_first_and_what_nobody_has_last() -> None:
    one, two, idle = member("one", place(2)), member("two", place(0), place(1)), member("idle")
    committed = {place(1): Committed(4), place(0, "returns"): Committed(1), place(2): Committed(9)}
    ends = {place(0): 5, place(1): 5, place(2): 9, place(0, "returns"): 8}
    lags = partition_lags(group(one, two, idle), committed, ends)
    assert lags == (
        PartitionLag(place(0), None, 5, two),
        PartitionLag(place(1), Committed(4), 5, two),
        PartitionLag(place(2), Committed(9), 9, one),
        PartitionLag(place(0, "returns"), Committed(1), 8, None),
    )
    assert [each.lag for each in lags] == [None, 1, 0, 7]
    assert GroupLag(group(one, two, idle), lags).total == 8


def test_a_group_without_members_is_behind_all_the_same() -> None:
    lags = partition_lags(group(state="Empty"), {place(0): Committed(2)}, {place(0): 5})
    assert [(each.offset, each.end, each.lag, each.member) for each in lags] == [(2, 5, 3, None)]


def test_what_is_not_known_is_not_zero() -> None:
    gone = partition_lags(group(state="Empty"), {place(0): Committed(2)}, {})
    assert [(each.offset, each.end, each.lag) for each in gone] == [(2, None, None)]
    assert GroupLag(group(), gone).total is None
    assert GroupLag(group(), ()).total is None


def test_a_log_that_was_truncated_below_what_was_committed_shows() -> None:
    (lag,) = partition_lags(group(), {place(0): Committed(9)}, {place(0): 5})
    assert lag.lag == -4
