"""Whose replication is limited while replicas move."""

from __future__ import annotations

from moldau.cli.kafka.reassignment.throttles import Move, moves_of
from moldau.core.ids import TopicPartition
from moldau.wire.messages.list_partition_reassignments import OngoingPartitionReassignment

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_a_move_is_from_the_replicas_of_before_to_the_new_ones() -> None:
    assert moves_of({}, {FIRST: [3, 1]}, {FIRST: [1, 2]}) == {FIRST: Move(frozenset({1, 2}), frozenset({3}))}


def test_a_move_that_goes_on_still_comes_from_where_it_began() -> None:
    active = {
        FIRST: OngoingPartitionReassignment(0, [3, 1, 2], [3], [2]),
        SECOND: OngoingPartitionReassignment(1, [2, 3], [3], []),
    }
    assert moves_of(active, {FIRST: [4, 1]}, {FIRST: [3, 1, 2]}) == {
        FIRST: Move(frozenset({1, 2}), frozenset({4})),
        SECOND: Move(frozenset({2}), frozenset({3})),
    }
