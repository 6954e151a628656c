"""What a reader may not, or no longer, it does not get: of a request with thousands of partitions that waits, or by
the number of a replica."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

import moldau
from moldau.broker.handlers.fetch import MANY
from moldau.core.errors import ErrorCode
from moldau.security.acls.vocabulary import CLUSTER_NAME, AclOperation, PatternType, PermissionType, ResourceType
from moldau.wire.messages import FetchRequest, FetchResponse
from moldau.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from moldau.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from moldau.wire.messages.fetch import FetchPartition, FetchTopic
from tests.broker.handlers.wire import Wire

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
VERSION = 12
WAIT_MS = 1_000


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with moldau.run(overrides=PROPERTIES) as broker:
        yield broker.bootstrap_servers


def rule(
    wire: Wire,
    resource_type: ResourceType,
    name: str,
    operation: AclOperation,
    permission: PermissionType = PermissionType.DENY,
) -> None:
    acl = AclCreation(
        resource_type=resource_type,
        resource_name=name,
        resource_pattern_type=PatternType.LITERAL,
        principal="User:ANONYMOUS",
        host="*",
        operation=operation,
        permission_type=permission,
    )
    (result,) = wire.ask(CreateAclsRequest(creations=[acl]), 3, CreateAclsResponse).results
    assert result.error_code == ErrorCode.NONE


def fetched(wire: Wire, topic: str, count: int, *, wait_ms: int = 0, replica_id: int = -1) -> FetchResponse:
    """Partition 0, named so many times."""
    wanted = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)] * count
    request = FetchRequest(
        replica_id=replica_id,
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic=topic, partitions=wanted)],
    )
    return wire.ask(request, VERSION, FetchResponse)


def test_a_fetch_of_many_partitions_that_waits_loses_its_right_too(bootstrap: str) -> None:
    with closing(Wire(bootstrap)) as reader, closing(Wire(bootstrap)) as other, ThreadPoolExecutor(1) as thread:
        other.create_topic("wide")
        rule(other, ResourceType.TOPIC, "wide", AclOperation.ALL, PermissionType.ALLOW)
        assert fetched(reader, "wide", MANY + 1).responses[0].partitions[0].error_code == ErrorCode.NONE
        late = thread.submit(fetched, reader, "wide", MANY + 1, wait_ms=10 * WAIT_MS)
        fetched(other, "wide", 1, wait_ms=WAIT_MS)
        rule(other, ResourceType.TOPIC, "wide", AclOperation.READ)
        other.produce("wide", 0, "secret")
        rows = [each for topic in late.result().responses for each in topic.partitions]
        assert {ErrorCode(each.error_code) for each in rows} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        assert not any(each.records for each in rows)


def test_the_number_of_a_replica_evades_no_quota(bootstrap: str) -> None:
    with closing(Wire(bootstrap, "hasty")) as reader, closing(Wire(bootstrap)) as other:
        other.create_topic("narrow")
        entry = EntryData([EntityData("client-id", "hasty")], [OpData("request_percentage", 1e-6, False)])
        (altered,) = other.ask(AlterClientQuotasRequest(entries=[entry]), 1, AlterClientQuotasResponse).entries
        assert altered.error_code == ErrorCode.NONE
        assert fetched(reader, "narrow", 1, replica_id=0).throttle_time_ms == 0, "brokers have no quota"
        rule(other, ResourceType.CLUSTER, CLUSTER_NAME, AclOperation.CLUSTER_ACTION)
        throttled_ms = [fetched(reader, "narrow", 1, replica_id=0).throttle_time_ms for _ in range(2)]
        assert max(throttled_ms) > 0
