"""Requests that need a right on the whole cluster, refused in the shape that each API has for it.

The handler of such an API is not called, wherever the request came from: a connection, or an envelope. What is refused
is decoded first, because most answers repeat what was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moldau.broker.api import Api
from moldau.broker.requests.answers import ROWS_MAX, Encoded, encoded
from moldau.broker.requests.judging import judging
from moldau.core.errors import ErrorCode
from moldau.security.acls.requirements import needed_of_the_cluster
from moldau.wire.api import ApiKey
from moldau.wire.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse, AlteredEntry
from moldau.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from moldau.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from moldau.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from moldau.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from moldau.wire.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from moldau.wire.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from moldau.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from moldau.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from moldau.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from moldau.wire.messages.registry import RESPONSES
from moldau.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from moldau.wire.schema import Message

if TYPE_CHECKING:
    from moldau.broker.authorization import Authorization
    from moldau.broker.context import Context

ELECTION_ERROR_SINCE = 1  # of the whole request
REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def guarded(table: Iterable[Api], authorization: Authorization) -> Iterator[Api]:
    """The same APIs: those that need a right on the cluster ask for it first, long ones for what they name."""
    for api in table:
        low, high = api.versions
        needs_some = any(needed_of_the_cluster(api.key, version) is not None for version in range(low, high + 1))
        asking = replace(api, call=_asking(api, authorization)) if needs_some else api
        yield judging(asking, authorization)


def _asking(api: Api, authorization: Authorization) -> Callable[[Any, Context], Any]:
    needed = {
        version: needed_of_the_cluster(api.key, version) for version in range(api.versions[0], api.versions[1] + 1)
    }

    def call(request: Any, context: Context) -> Any:
        needs = needed[context.version]
        if needs is not None and not authorization.meets(context, needs):
            return _refused(api, request, context)
        return api.call(request, context)

    return call


def _refused(api: Api, request: Any, context: Context) -> Message | Coroutine[Any, Any, Encoded[Message]]:
    """By a thread if the request is long, for most refusals have a row for each of its elements."""
    version = context.version
    if api.parts or not is_long(request):  # of a request that comes in parts, each is short
        return refusal(api.key, request, version)
    return encoded(lambda: refusal(api.key, request, version), context)


def is_long(request: Any) -> bool:
    """Whether it has more elements than a response is made of at once. No more of them are looked at than that."""
    left, count = [request], 0
    while left:
        message = left.pop()
        for name in message.__struct_fields__:
            elements = getattr(message, name)
            if not isinstance(elements, list):
                continue
            count += len(elements)
            if count > ROWS_MAX:
                return True
            left += [each for each in elements if isinstance(each, Struct)]
    return False


def refusal(key: ApiKey, request: Any, version: int) -> Message:
    if key is ApiKey.ELECT_LEADERS:
        return _elect_leaders(request, version)
    shape = _SHAPES.get(key)
    return _by_error_code(key) if shape is None else shape(request)


def _by_error_code(key: ApiKey) -> Message:
    kind: Any = next(each for each in RESPONSES if key == each.API_KEY)
    names = getattr(kind, "__struct_fields__", ())
    assert "error_code" in names, f"{key.name} has no place for an error of the whole request: give it a shape here"
    message = {"error_message": REFUSED.message} if "error_message" in names else {}
    refused: Message = kind(error_code=REFUSED, **message)
    return refused


def _create_acls(request: CreateAclsRequest) -> CreateAclsResponse:
    return CreateAclsResponse(results=[AclCreationResult(REFUSED, REFUSED.message) for _ in request.creations])


def _delete_acls(request: DeleteAclsRequest) -> DeleteAclsResponse:
    results = [DeleteAclsFilterResult(REFUSED, REFUSED.message) for _ in request.filters]
    return DeleteAclsResponse(filter_results=results)


def _alter_replica_log_dirs(request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    topics: dict[str, dict[int, AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            rows = topics.setdefault(topic.name, {})
            rows.update((index, AlterReplicaLogDirPartitionResult(index, REFUSED)) for index in topic.partitions)
    return AlterReplicaLogDirsResponse(
        results=[AlterReplicaLogDirTopicResult(name, [*rows.values()]) for name, rows in topics.items()]
    )


def _elect_leaders(request: ElectLeadersRequest, version: int) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=REFUSED if version >= ELECTION_ERROR_SINCE else ErrorCode.NONE,
        replica_election_results=[
            ReplicaElectionResult(
                topic.topic, [PartitionResult(index, REFUSED, REFUSED.message) for index in topic.partitions]
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _alter_partition_reassignments(request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=REFUSED,
        error_message=REFUSED.message,
        responses=[
            ReassignableTopicResponse(
                topic.name,
                [
                    ReassignablePartitionResponse(each.partition_index, REFUSED, REFUSED.message)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _list_partition_reassignments(request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        error_code=REFUSED,
        error_message=REFUSED.message,
        topics=[
            OngoingTopicReassignment(
                topic.name, [OngoingPartitionReassignment(index) for index in topic.partition_indexes]
            )
            for topic in request.topics or ()
        ],
    )


def _write_txn_markers(request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                marker.producer_id,
                [
                    WritableTxnMarkerTopicResult(
                        topic.name,
                        [WritableTxnMarkerPartitionResult(index, REFUSED) for index in topic.partition_indexes],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _describe_client_quotas(_: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=REFUSED, error_message=REFUSED.message, entries=None)


def _alter_client_quotas(request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[AlteredEntry(REFUSED, REFUSED.message, each.entity) for each in request.entries]
    )


def _describe_scram(request: DescribeUserScramCredentialsRequest) -> DescribeUserScramCredentialsResponse:
    """One row for each user, and Kafka leaves their names out of it."""
    return DescribeUserScramCredentialsResponse(
        error_code=REFUSED,
        error_message=REFUSED.message,
        results=[
            DescribeUserScramCredentialsResult(error_code=REFUSED, error_message=REFUSED.message)
            for _ in request.users or ()
        ],
    )


def _alter_scram(request: AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsResponse:
    users = {each.name for each in request.deletions} | {each.name for each in request.upsertions}
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(user, REFUSED, REFUSED.message) for user in sorted(users)]
    )


# All others have one error code for the whole request.
_SHAPES: MappingProxyType[ApiKey, Callable[[Any], Message]] = MappingProxyType(
    {
        ApiKey.CREATE_ACLS: _create_acls,
        ApiKey.DELETE_ACLS: _delete_acls,
        ApiKey.ALTER_REPLICA_LOG_DIRS: _alter_replica_log_dirs,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: _alter_partition_reassignments,
        ApiKey.LIST_PARTITION_REASSIGNMENTS: _list_partition_reassignments,
        ApiKey.WRITE_TXN_MARKERS: _write_txn_markers,
        ApiKey.DESCRIBE_CLIENT_QUOTAS: _describe_client_quotas,
        ApiKey.ALTER_CLIENT_QUOTAS: _alter_client_quotas,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _describe_scram,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _alter_scram,
    }
)
