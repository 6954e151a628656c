"""DescribeQuorum of several brokers, each of which may control."""

from __future__ import annotations

import moldau
from moldau.embedded import EmbeddedBroker
from moldau.wire.messages import DescribeQuorumRequest, DescribeQuorumResponse
from moldau.wire.messages.describe_quorum import QuorumPartitionQuery, QuorumTopicQuery
from tests.cluster.asking import ask, until

VERSION = 2
METADATA = [QuorumTopicQuery(topic_name="__cluster_metadata", partitions=[QuorumPartitionQuery(partition_index=0)])]


def described(broker: EmbeddedBroker) -> DescribeQuorumResponse:
    found: DescribeQuorumResponse = ask(broker, DescribeQuorumRequest(topics=METADATA), VERSION)
    return found


def test_every_broker_is_a_voter_and_tells_how_far_it_is(cluster: moldau.EmbeddedCluster) -> None:
    cluster.create_topic("told-to-all")
    for broker in cluster.brokers.values():
        found = described(broker)
        (partition,) = found.topics[0].partitions
        assert [voter.replica_id for voter in partition.current_voters] == sorted(cluster.brokers)
        assert (partition.leader_id, partition.observers) == (cluster.controller, [])
        assert all(voter.last_fetch_timestamp > 0 for voter in partition.current_voters)
        assert {(node.node_id, node.listeners[0].port) for node in found.nodes} == {
            (broker_id, each.address.port) for broker_id, each in cluster.brokers.items()
        }
    until(
        lambda: (
            {voter.log_end_offset for voter in described(broker).topics[0].partitions[0].current_voters}
            == {described(broker).topics[0].partitions[0].high_watermark}
        )
    )
