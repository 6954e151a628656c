from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import ElectLeadersRequest, ElectLeadersResponse
from moldau.wire.messages.elect_leaders import PartitionResult, TopicPartitions
from tests.broker.handlers.wire import Wire

PREFERRED, UNCLEAN = 0, 1
MISSING = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("version", "kind"), [(0, PREFERRED), (1, UNCLEAN), (2, PREFERRED), (2, UNCLEAN)])
def test_a_leader_that_is_there_is_not_elected_again(wire: Wire, name: str, version: int, kind: int) -> None:
    wire.create_topic(name, 2)
    asked = [TopicPartitions(topic=name, partitions=[1, 0, 7]), TopicPartitions(topic=f"{name}-not", partitions=[0])]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=asked)
    done = wire.ask(request, version, ElectLeadersResponse)
    needless = "Leader election not needed for topic partition."
    assert done.error_code == ErrorCode.NONE
    found = {result.topic: result.partition_result for result in done.replica_election_results}
    assert found == {
        name: [
            PartitionResult(1, ErrorCode.ELECTION_NOT_NEEDED, needless),
            PartitionResult(0, ErrorCode.ELECTION_NOT_NEEDED, needless),
            PartitionResult(7, MISSING, f"No such partition as {name}-7"),
        ],
        f"{name}-not": [PartitionResult(0, MISSING, f"No such topic as {name}-not")],
    }


def test_for_all_partitions_only_what_needs_telling_is_told(wire: Wire, name: str) -> None:
    wire.create_topic(name, 2)
    done = wire.ask(ElectLeadersRequest(topic_partitions=None), 2, ElectLeadersResponse)
    assert (done.error_code, [each for each in done.replica_election_results if each.partition_result]) == (0, [])
    assert name in [each.topic for each in done.replica_election_results]


def test_there_are_two_kinds_of_election(wire: Wire, name: str) -> None:
    request = ElectLeadersRequest(election_type=2, topic_partitions=[TopicPartitions(topic=name, partitions=[0])])
    assert wire.ask(request, 2, ElectLeadersResponse).error_code == ErrorCode.INVALID_REQUEST
