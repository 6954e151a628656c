"""AlterPartitionReassignments and ListPartitionReassignments on a cluster of one broker."""

from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from moldau.wire.messages.alter_partition_reassignments import ReassignablePartition, ReassignableTopic
from moldau.wire.messages.list_partition_reassignments import ListPartitionReassignmentsTopics
from tests.broker.handlers.wire import Wire

INVALID = ErrorCode.INVALID_REPLICA_ASSIGNMENT
PROBLEM = "The manual partition assignment includes"


def reassign(wire: Wire, version: int, topic: str, index: int, replicas: list[int] | None) -> tuple[int, str | None]:
    partitions = [ReassignablePartition(partition_index=index, replicas=replicas)]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=topic, partitions=partitions)])
    done = wire.ask(request, version, AlterPartitionReassignmentsResponse)
    assert (done.error_code, done.error_message) == (ErrorCode.NONE, None)
    ((result,),) = [each.partitions for each in done.responses if each.name == topic]
    assert result.partition_index == index
    return result.error_code, result.error_message


@pytest.mark.parametrize("version", [0, 1])
def test_the_replicas_that_a_partition_has_change_nothing(wire: Wire, name: str, broker_id: int, version: int) -> None:
    wire.create_topic(name)
    assert reassign(wire, version, name, 0, [broker_id]) == (ErrorCode.NONE, None)
    asked = [ListPartitionReassignmentsTopics(name=name, partition_indexes=[0, 7])]
    for topics in (None, asked, [ListPartitionReassignmentsTopics(name="no-such-topic", partition_indexes=[0])]):
        found = wire.ask(ListPartitionReassignmentsRequest(topics=topics), 0, ListPartitionReassignmentsResponse)
        assert found == ListPartitionReassignmentsResponse(error_message=None)


def test_what_can_not_be_done_is_said(wire: Wire, name: str, broker_id: int) -> None:
    wire.create_topic(name)
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    stranger = broker_id + 70
    assert reassign(wire, 1, f"{name}-not", 0, [broker_id]) == (missing, f"Unable to find a topic named {name}-not.")
    assert reassign(wire, 1, name, 3, [broker_id]) == (missing, f"Unable to find partition {name}:3.")
    no_such_broker = f"{PROBLEM} broker {stranger}, but no such broker is registered."
    assert reassign(wire, 1, name, 0, [stranger]) == (INVALID, no_such_broker)
    assert reassign(wire, 1, name, 0, []) == (INVALID, f"{PROBLEM} an empty replica list.")
    twice = f"{PROBLEM} the broker {broker_id} more than once."
    assert reassign(wire, 1, name, 0, [broker_id, broker_id]) == (INVALID, twice)
    assert reassign(wire, 1, name, 0, None) == (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
