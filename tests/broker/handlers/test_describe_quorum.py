from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import DescribeQuorumRequest, DescribeQuorumResponse
from moldau.wire.messages.describe_quorum import PartitionData, QuorumPartitionQuery, QuorumTopicQuery
from tests.broker.handlers.wire import Wire


def ask(wire: Wire, version: int, topic: str = "__cluster_metadata", index: int = 0) -> PartitionData:
    asked = [QuorumTopicQuery(topic_name=topic, partitions=[QuorumPartitionQuery(partition_index=index)])]
    found = wire.ask(DescribeQuorumRequest(topics=asked), version, DescribeQuorumResponse)
    assert found.error_code == ErrorCode.NONE
    (described,) = found.topics
    assert described.topic_name == topic
    (partition,) = described.partitions
    assert partition.partition_index == index
    return partition


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_broker_alone_is_the_only_voter(wire: Wire, name: str, broker_id: int, version: int) -> None:
    before = ask(wire, version)
    wire.create_topic(name)
    after = ask(wire, version)
    assert (after.error_code, after.leader_id, after.observers) == (ErrorCode.NONE, broker_id, [])
    assert after.leader_epoch > 0
    assert after.high_watermark > before.high_watermark > 0
    (voter,) = after.current_voters
    assert (voter.replica_id, voter.log_end_offset >= after.high_watermark) == (broker_id, True)
    assert (voter.last_caught_up_timestamp > 1_600_000_000_000) == (version >= 1)


@pytest.mark.parametrize(("topic", "index"), [("__cluster_metadata", 1), ("orders", 0)])
def test_nothing_else_has_a_quorum(wire: Wire, topic: str, index: int) -> None:
    assert ask(wire, 2, topic, index).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
