"""A broker whose session was lost can't know who leads what it led, and must not send clients to itself."""

from __future__ import annotations

import asyncio
import dataclasses
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from moldau.broker.context import Context, Peer
from moldau.broker.context import Services as RealServices
from moldau.broker.handlers.describe_cluster import describe_cluster
from moldau.broker.handlers.find_coordinator import find_coordinator
from moldau.broker.handlers.metadata import metadata
from moldau.controller.image import BrokerImage, ClusterImage, without_leader
from moldau.core.config.broker import BrokerConfig
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER
from moldau.core.topic_names import GROUP_METADATA_TOPIC
from moldau.node.cluster.membership import Membership
from moldau.wire.api import ApiKey
from moldau.wire.frame import RequestHeader
from moldau.wire.messages import DescribeClusterRequest, FindCoordinatorRequest, MetadataRequest
from tests.controller.clusters import ENDPOINTS, cluster, partition, topic

if TYPE_CHECKING:
    from moldau.broker.context import Services


class Lost:
    """Services of broker 1 of three, after it lost its session."""

    image = RealServices.image

    def __init__(self, image: ClusterImage) -> None:
        self.broker_id = 1
        self.config = BrokerConfig()
        self.controller = SimpleNamespace(image=image)
        self.partitions = SimpleNamespace(all=lambda: [])
        self.itself = None
        self.authorization = None
        self.image_without_itself: ClusterImage | None = None
        itself = BrokerImage(1, ENDPOINTS)
        membership = Membership(cast(Any, None), itself, cluster_id="cluster", has_whole_logs=True, lost={})
        membership.is_followed = True
        membership._lose_session(cast("Services", self))


def asked(call: Any, key: ApiKey, request: Any, version: int) -> Any:
    led = replace(topic("orders"), partitions=(partition(1, 2), partition(2, 1)))
    offsets = topic(GROUP_METADATA_TOPIC, number=101)
    image = dataclasses.replace(cluster(led, offsets, brokers=3), controller_id=1)
    services = cast("Services", Lost(image))
    context = Context(services, RequestHeader(key, version, 0, "client"), Peer("PLAINTEXT", "host", 1))

    async def answer() -> Any:
        return call(request, context)

    return asyncio.run(answer())


def test_metadata_names_others_and_leaves_open_who_leads() -> None:
    answer = asked(metadata.call, ApiKey.METADATA, MetadataRequest(topics=None), 12)
    assert [broker.node_id for broker in answer.brokers] == [2, 3]
    assert answer.controller_id == -1
    orders = next(each for each in answer.topics if each.name == "orders")
    found = [(each.leader_id, each.error_code) for each in orders.partitions]
    assert found == [(NO_LEADER, ErrorCode.LEADER_NOT_AVAILABLE), (2, ErrorCode.NONE)]


def test_a_coordinator_is_to_be_looked_for_again() -> None:
    ask = partial(asked, find_coordinator.call, ApiKey.FIND_COORDINATOR)
    (found,) = ask(FindCoordinatorRequest(coordinator_keys=["group"]), 4).coordinators
    assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


def test_it_is_not_among_the_brokers_of_the_cluster() -> None:
    answer = asked(describe_cluster.call, ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest(), 1)
    assert [broker.broker_id for broker in answer.brokers] == [2, 3]


def test_topics_that_it_leads_nothing_of_are_not_copied() -> None:
    """It looks at each image of the cluster until it is taken in again, and a cluster may have 100,000 partitions."""
    led = replace(topic("led"), partitions=(partition(1, 2), partition(2, 1)))
    others = replace(topic("others", number=101), partitions=(partition(2, 1), partition(2, 1)))
    image = cluster(led, others, brokers=2)
    shown = without_leader(image, 1)
    assert shown.topics["others"] is image.topics["others"]
    assert shown.topics["led"].partitions[1] is image.topics["led"].partitions[1]
    assert [state.leader for state in shown.topics["led"].partitions] == [NO_LEADER, 2]
