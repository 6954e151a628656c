"""A broker that answers before the cluster takes it in tells clients of some broker, if only of itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from msgspec.structs import replace

from moldau.broker.context import Context, Peer
from moldau.broker.handlers.describe_cluster import describe_cluster
from moldau.broker.handlers.metadata import metadata
from moldau.controller.image import BrokerImage, ClusterImage, Endpoint
from moldau.controller.machine import apply
from moldau.controller.records import BrokerRegistered
from moldau.core.config.broker import BrokerConfig
from moldau.wire.api import ApiKey
from moldau.wire.frame import RequestHeader
from moldau.wire.messages import DescribeClusterRequest, DescribeClusterResponse, MetadataRequest, MetadataResponse
from tests.controller.clusters import cluster

if TYPE_CHECKING:
    from moldau.broker.context import Services

ITSELF = BrokerImage(2, {"PLAINTEXT": Endpoint("host", 19092)}, rack="a")
VERSIONS = range(14)


def brokers(image: ClusterImage, version: int, *, listener: str = "PLAINTEXT") -> list[tuple[int, int]]:
    services = cast("Services", SimpleNamespace(authorization=None, image=image, config=BrokerConfig(), itself=ITSELF))
    context = Context(services, RequestHeader(ApiKey.METADATA, version, 0, "client"), Peer(listener, "host", 1))
    answer = metadata.call(MetadataRequest(topics=[] if version == 0 else None), context)
    assert isinstance(answer, MetadataResponse)
    return [(each.node_id, each.port) for each in answer.brokers]


def described(image: ClusterImage, *, with_fenced: bool = False) -> list[tuple[int, int, bool]]:
    services = cast("Services", SimpleNamespace(authorization=None, image=image, config=BrokerConfig(), itself=ITSELF))
    context = Context(services, RequestHeader(ApiKey.DESCRIBE_CLUSTER, 2, 0, "client"), Peer("PLAINTEXT", "host", 1))
    answer = describe_cluster.call(DescribeClusterRequest(include_fenced_brokers=with_fenced), context)
    assert isinstance(answer, DescribeClusterResponse)
    return [(each.broker_id, each.port, each.is_fenced) for each in answer.brokers]


def fenced(image: ClusterImage, *broker_ids: int) -> ClusterImage:
    return apply(image, [BrokerRegistered(replace(image.brokers[each], fenced=True)) for each in broker_ids])


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_of_all_that_comes_back_tells_of_itself_and_of_those_that_will(version: int) -> None:
    assert brokers(fenced(cluster(brokers=3), 1, 2, 3), version) == [(1, 9092), (2, 9092), (3, 9092)]
    assert brokers(ClusterImage(), version) == [(2, 19092)]


@pytest.mark.parametrize("version", VERSIONS)
def test_whoever_answers_is_named(version: int) -> None:
    """Else clients of one that lost its session forget it, and hear of it again from the next one that they ask."""
    assert brokers(fenced(cluster(brokers=3), 2), version) == [(1, 9092), (2, 19092), (3, 9092)]
    assert brokers(fenced(cluster(brokers=3), 1), version) == [(2, 9092), (3, 9092)]


@pytest.mark.parametrize(
    "image",
    [
        ClusterImage(),
        cluster(brokers=3),
        fenced(cluster(brokers=3), 1),
        fenced(cluster(brokers=3), 2),
        fenced(cluster(brokers=3), 1, 2, 3),
    ],
)
def test_a_description_of_the_cluster_names_the_brokers_that_metadata_names(image: ClusterImage) -> None:
    assert [(broker_id, port) for broker_id, port, _ in described(image)] == brokers(image, 13)


def test_a_description_says_who_is_fenced() -> None:
    image = fenced(cluster(brokers=3), 1, 2)
    assert described(image) == [(2, 19092, True), (3, 9092, False)]
    assert described(image, with_fenced=True) == [(1, 9092, True), (2, 9092, True), (3, 9092, False)]
    assert described(ClusterImage(), with_fenced=True) == [(2, 19092, True)], "it is not taken in yet"


def test_nobody_is_told_of_another_listener() -> None:
    assert brokers(fenced(cluster(brokers=3), 1, 2, 3), 13, listener="INTERNAL") == []
