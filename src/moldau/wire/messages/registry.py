"""Every API that has messages here, for whoever must go through them all."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from moldau.wire import messages
from moldau.wire.schema import Message

REQUESTS: tuple[type[Message], ...] = (
    messages.ProduceRequest,
    messages.FetchRequest,
    messages.ListOffsetsRequest,
    messages.MetadataRequest,
    messages.ApiVersionsRequest,
    messages.CreateTopicsRequest,
    messages.DeleteTopicsRequest,
    messages.CreatePartitionsRequest,
    messages.DeleteRecordsRequest,
    messages.DescribeConfigsRequest,
    messages.AlterConfigsRequest,
    messages.IncrementalAlterConfigsRequest,
    messages.DescribeClusterRequest,
    messages.DescribeLogDirsRequest,
    messages.DescribeTopicPartitionsRequest,
    messages.ListConfigResourcesRequest,
    messages.InitProducerIdRequest,
    messages.OffsetForLeaderEpochRequest,
    messages.DescribeProducersRequest,
    messages.FindCoordinatorRequest,
    messages.JoinGroupRequest,
    messages.SyncGroupRequest,
    messages.HeartbeatRequest,
    messages.LeaveGroupRequest,
    messages.OffsetCommitRequest,
    messages.OffsetFetchRequest,
)

RESPONSES: tuple[type[Message], ...] = (
    messages.ProduceResponse,
    messages.FetchResponse,
    messages.ListOffsetsResponse,
    messages.MetadataResponse,
    messages.ApiVersionsResponse,
    messages.CreateTopicsResponse,
    messages.DeleteTopicsResponse,
    messages.CreatePartitionsResponse,
    messages.DeleteRecordsResponse,
    messages.DescribeConfigsResponse,
    messages.AlterConfigsResponse,
    messages.IncrementalAlterConfigsResponse,
    messages.DescribeClusterResponse,
    messages.DescribeLogDirsResponse,
    messages.DescribeTopicPartitionsResponse,
    messages.ListConfigResourcesResponse,
    messages.InitProducerIdResponse,
    messages.OffsetForLeaderEpochResponse,
    messages.DescribeProducersResponse,
    messages.FindCoordinatorResponse,
    messages.JoinGroupResponse,
    messages.SyncGroupResponse,
    messages.HeartbeatResponse,
    messages.LeaveGroupResponse,
    messages.OffsetCommitResponse,
    messages.OffsetFetchResponse,
)

# An api key's first version with compact lengths, which decides how its header is read.
FLEXIBLE_FROM: Mapping[int, int] = MappingProxyType({cls.API_KEY: cls.FLEXIBLE_FROM for cls in REQUESTS})
