"""The messages of the protocol: one module per API, one class for all versions of a request or response.

A name is imported when somebody asks for it: a broker needs most of them, a tool that is to start at once needs four.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
    from moldau.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
    from moldau.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
    from moldau.wire.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
    from moldau.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
    from moldau.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
    from moldau.wire.messages.alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
    )
    from moldau.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
    from moldau.wire.messages.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        AlterUserScramCredentialsResponse,
    )
    from moldau.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
    from moldau.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
    from moldau.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
    from moldau.wire.messages.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )
    from moldau.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse
    from moldau.wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
    from moldau.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
    from moldau.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
    from moldau.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
    from moldau.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
    from moldau.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
    from moldau.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
    from moldau.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
    from moldau.wire.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
    from moldau.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
    from moldau.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
    from moldau.wire.messages.describe_delegation_token import (
        DescribeDelegationTokenRequest,
        DescribeDelegationTokenResponse,
    )
    from moldau.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
    from moldau.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
    from moldau.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
    from moldau.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
    from moldau.wire.messages.describe_topic_partitions import (
        DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsResponse,
    )
    from moldau.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
    from moldau.wire.messages.describe_user_scram_credentials import (
        DescribeUserScramCredentialsRequest,
        DescribeUserScramCredentialsResponse,
    )
    from moldau.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
    from moldau.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
    from moldau.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
    from moldau.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
    from moldau.wire.messages.fetch import FetchRequest, FetchResponse
    from moldau.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
    from moldau.wire.messages.get_telemetry_subscriptions import (
        GetTelemetrySubscriptionsRequest,
        GetTelemetrySubscriptionsResponse,
    )
    from moldau.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
    from moldau.wire.messages.incremental_alter_configs import (
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )
    from moldau.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
    from moldau.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
    from moldau.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
    from moldau.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
    from moldau.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
    from moldau.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
    from moldau.wire.messages.list_partition_reassignments import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
    )
    from moldau.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
    from moldau.wire.messages.metadata import MetadataRequest, MetadataResponse
    from moldau.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
    from moldau.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
    from moldau.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
    from moldau.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
    from moldau.wire.messages.produce import ProduceRequest, ProduceResponse
    from moldau.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
    from moldau.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
    from moldau.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
    from moldau.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
    from moldau.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
    from moldau.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
    from moldau.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
    from moldau.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
    from moldau.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

__all__ = [
    "AddOffsetsToTxnRequest",
    "AddOffsetsToTxnResponse",
    "AddPartitionsToTxnRequest",
    "AddPartitionsToTxnResponse",
    "AllocateProducerIdsRequest",
    "AllocateProducerIdsResponse",
    "AlterClientQuotasRequest",
    "AlterClientQuotasResponse",
    "AlterConfigsRequest",
    "AlterConfigsResponse",
    "AlterPartitionReassignmentsRequest",
    "AlterPartitionReassignmentsResponse",
    "AlterPartitionRequest",
    "AlterPartitionResponse",
    "AlterReplicaLogDirsRequest",
    "AlterReplicaLogDirsResponse",
    "AlterUserScramCredentialsRequest",
    "AlterUserScramCredentialsResponse",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "AssignReplicasToDirsRequest",
    "AssignReplicasToDirsResponse",
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatResponse",
    "CreateAclsRequest",
    "CreateAclsResponse",
    "CreateDelegationTokenRequest",
    "CreateDelegationTokenResponse",
    "CreatePartitionsRequest",
    "CreatePartitionsResponse",
    "CreateTopicsRequest",
    "CreateTopicsResponse",
    "DeleteAclsRequest",
    "DeleteAclsResponse",
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
    "DeleteRecordsRequest",
    "DeleteRecordsResponse",
    "DeleteTopicsRequest",
    "DeleteTopicsResponse",
    "DescribeAclsRequest",
    "DescribeAclsResponse",
    "DescribeClientQuotasRequest",
    "DescribeClientQuotasResponse",
    "DescribeClusterRequest",
    "DescribeClusterResponse",
    "DescribeConfigsRequest",
    "DescribeConfigsResponse",
    "DescribeDelegationTokenRequest",
    "DescribeDelegationTokenResponse",
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
    "DescribeLogDirsRequest",
    "DescribeLogDirsResponse",
    "DescribeProducersRequest",
    "DescribeProducersResponse",
    "DescribeQuorumRequest",
    "DescribeQuorumResponse",
    "DescribeTopicPartitionsRequest",
    "DescribeTopicPartitionsResponse",
    "DescribeTransactionsRequest",
    "DescribeTransactionsResponse",
    "DescribeUserScramCredentialsRequest",
    "DescribeUserScramCredentialsResponse",
    "ElectLeadersRequest",
    "ElectLeadersResponse",
    "EndTxnRequest",
    "EndTxnResponse",
    "EnvelopeRequest",
    "EnvelopeResponse",
    "ExpireDelegationTokenRequest",
    "ExpireDelegationTokenResponse",
    "FetchRequest",
    "FetchResponse",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
    "GetTelemetrySubscriptionsRequest",
    "GetTelemetrySubscriptionsResponse",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "IncrementalAlterConfigsRequest",
    "IncrementalAlterConfigsResponse",
    "InitProducerIdRequest",
    "InitProducerIdResponse",
    "JoinGroupRequest",
    "JoinGroupResponse",
    "LeaveGroupRequest",
    "LeaveGroupResponse",
    "ListConfigResourcesRequest",
    "ListConfigResourcesResponse",
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "ListPartitionReassignmentsRequest",
    "ListPartitionReassignmentsResponse",
    "ListTransactionsRequest",
    "ListTransactionsResponse",
    "MetadataRequest",
    "MetadataResponse",
    "OffsetCommitRequest",
    "OffsetCommitResponse",
    "OffsetDeleteRequest",
    "OffsetDeleteResponse",
    "OffsetFetchRequest",
    "OffsetFetchResponse",
    "OffsetForLeaderEpochRequest",
    "OffsetForLeaderEpochResponse",
    "ProduceRequest",
    "ProduceResponse",
    "PushTelemetryRequest",
    "PushTelemetryResponse",
    "RenewDelegationTokenRequest",
    "RenewDelegationTokenResponse",
    "SaslAuthenticateRequest",
    "SaslAuthenticateResponse",
    "SaslHandshakeRequest",
    "SaslHandshakeResponse",
    "SyncGroupRequest",
    "SyncGroupResponse",
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitResponse",
    "UnregisterBrokerRequest",
    "UnregisterBrokerResponse",
    "UpdateFeaturesRequest",
    "UpdateFeaturesResponse",
    "WriteTxnMarkersRequest",
    "WriteTxnMarkersResponse",
]


def __getattr__(name: str) -> Any:
    """`ListOffsetsRequest` is in `list_offsets`: modules are named as APIs are."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    api = name.removesuffix("Request").removesuffix("Response")
    module = "".join(f"_{each.lower()}" if each.isupper() else each for each in api).removeprefix("_")
    found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return found
