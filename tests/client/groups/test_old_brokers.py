"""Brokers from before requests about many groups at once: what is asked of them can be said in their versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, cast

import pytest

from moldau.client.cluster import Cluster, Node, Refused
from moldau.client.groups.committed import Committed, committed_offsets
from moldau.client.groups.describing import Group, describe_groups
from moldau.client.offsets import offsets_at
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.api import ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.messages import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from moldau.wire.messages.describe_groups import DescribedGroup
from moldau.wire.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from moldau.wire.messages.metadata import MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic
from moldau.wire.messages.offset_fetch import OffsetFetchResponsePartition, OffsetFetchResponseTopic
from moldau.wire.schema import Message

M = TypeVar("M", bound=Message)
VERSIONS: Mapping[int, tuple[int, int]] = {  # those of Apache Kafka 2.4
    ApiKey.LIST_OFFSETS: (0, 5),
    ApiKey.METADATA: (0, 9),
    ApiKey.OFFSET_FETCH: (0, 6),
    ApiKey.FIND_COORDINATOR: (0, 3),
    ApiKey.DESCRIBE_GROUPS: (0, 5),
}
PLACE = TopicPartition("orders", 0)


class OldConnection:
    """Says what one broker would, after everything has been through the bytes of its versions."""

    server = "old:9092"
    versions: Mapping[int, tuple[int, int]] = VERSIONS

    def ask(self, request: Message, response: type[M], *, version_max: int | None = None) -> M:
        newest = VERSIONS[ApiKey(request.API_KEY)][1]
        version = newest if version_max is None else min(newest, version_max)
        heard, _ = decode(type(request), version, encode(request, version))
        return decode(response, version, encode(self.answer(heard), version))[0]

    def answer(self, request: Message) -> Message:
        match request:
            case FindCoordinatorRequest(key="locked"):
                return FindCoordinatorResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
            case FindCoordinatorRequest():
                return FindCoordinatorResponse(node_id=3, host="old", port=9092)
            case MetadataRequest():
                part = MetadataResponsePartition(partition_index=0, leader_id=3)
                topic = MetadataResponseTopic(name="orders", partitions=[part])
                return MetadataResponse(brokers=[MetadataResponseBroker(3, "old", 9092)], topics=[topic])
            case DescribeGroupsRequest():
                return DescribeGroupsResponse(
                    groups=[DescribedGroup(group_id=each, group_state="Empty") for each in request.groups]
                )
            case OffsetFetchRequest(topics=None):
                parts = [OffsetFetchResponsePartition(0, 7, 2, request.group_id), OffsetFetchResponsePartition(1, -1)]
                return OffsetFetchResponse(topics=[OffsetFetchResponseTopic("orders", parts)])
            case ListOffsetsRequest():
                found = ListOffsetsPartitionResponse(0, timestamp=-1, offset=9, leader_epoch=2)
                return ListOffsetsResponse(topics=[ListOffsetsTopicResponse("orders", [found])])
        raise AssertionError(request)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    found = Cluster("old:9092", client_id="test", timeout_s=1.0)
    monkeypatch.setattr(found, "_connection", lambda host, port: cast("object", OldConnection()))
    return found


def test_groups_are_asked_about_one_by_one(cluster: Cluster) -> None:
    answers = committed_offsets(cluster, ["billing", "mailing", "locked"])
    assert answers["billing"] == {PLACE: Committed(7, 2, "billing")}
    assert answers["mailing"] == {PLACE: Committed(7, 2, "mailing")}
    refused = answers["locked"]
    assert isinstance(refused, Refused)
    assert refused.code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_all_groups_are_classic_ones(cluster: Cluster) -> None:
    described = describe_groups(cluster, ["billing"])
    assert described == {"billing": Group("billing", "Classic", "", "Empty", "", Node(3, "old", 9092), ())}


def test_offsets_are_those_of_leaders(cluster: Cluster) -> None:
    missing = TopicPartition("orders", 1)
    assert offsets_at(cluster, {PLACE: -1, missing: -1}) == (
        {PLACE: 9},
        {missing: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    )
